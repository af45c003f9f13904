#include "web.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace toto::server {

std::string_view content_type(std::string_view name) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Pair, 8> kContentTypes = {{{".html", "text/html; charset=utf-8"},
                                                         {".css", "text/css; charset=utf-8"},
                                                         {".js", "text/javascript; charset=utf-8"},
                                                         {".json", "application/json"},
                                                         {".svg", "image/svg+xml"},
                                                         {".png", "image/png"},
                                                         {".csv", "text/csv; charset=utf-8"},
                                                         {".woff2", "font/woff2"}}};
  for (const auto& [extension, type] : kContentTypes) {
    if (name.ends_with(extension)) return type;
  }
  return "application/octet-stream";
}

HttpResponse page(std::string_view name, std::string_view bytes, const ReportSources& report) {
  const auto source = [](const std::string& hash) {
    return hash.empty() ? hash : fmt::format(" '{}'", hash);
  };
  const std::string policy = fmt::format(
      "default-src 'none'; connect-src 'self'; img-src 'self' data: blob:; script-src 'self'{}; "
      "style-src 'self'{}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      source(report.script), source(report.style));
  return {.content_type = std::string(content_type(name)),
          .body = std::string(bytes),
          .headers = {{"Content-Security-Policy", policy},
                      {"Cache-Control", "no-cache"},
                      {"Referrer-Policy", "no-referrer"}}};
}

}  // namespace toto::server
