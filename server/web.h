// The files of server/web/ and the OpenAPI document, part of the program since it was built.
#pragma once

#include <span>
#include <string_view>

namespace toto::server {

struct WebFile {
  std::string_view name;  // "index.html"
  std::string_view bytes;
};

std::span<const WebFile> web_files();
const WebFile* find_web_file(std::string_view name);  // nullptr if there is none
// By the extension of a name; what is unknown is application/octet-stream.
std::string_view content_type(std::string_view name);

}  // namespace toto::server
