#include "web.h"

#include <algorithm>
#include <array>
#include <utility>

namespace toto::server {

const WebFile* find_web_file(std::string_view name) {
  const std::span<const WebFile> files = web_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const WebFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string_view content_type(std::string_view name) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Pair, 8> kTypes = {{{".html", "text/html; charset=utf-8"},
                                                  {".css", "text/css; charset=utf-8"},
                                                  {".js", "text/javascript; charset=utf-8"},
                                                  {".json", "application/json"},
                                                  {".svg", "image/svg+xml"},
                                                  {".png", "image/png"},
                                                  {".csv", "text/csv; charset=utf-8"},
                                                  {".woff2", "font/woff2"}}};
  for (const auto& [extension, type] : kTypes) {
    if (name.ends_with(extension)) return type;
  }
  return "application/octet-stream";
}

}  // namespace toto::server
