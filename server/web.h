// The files of server/web/ and the OpenAPI document, part of the program since it was built.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "message.h"

namespace toto::server {

struct WebFile {
  std::string_view name;  // "index.html"
  std::string_view bytes;
};

std::span<const WebFile> web_files();
const WebFile* find_web_file(std::string_view name);  // nullptr if there is none
// By the extension of a name; what is unknown is application/octet-stream.
std::string_view content_type(std::string_view name);

// What a report may run inside the page, which shows it in a frame: its script and its style sheet
// as a policy names them, "sha256-...". Empty: nothing.
struct ReportSources {
  std::string script = {};
  std::string style = {};
};
// A file for a browser, with the policy: no script, style or request but our own, in no frame.
Response page(std::string_view name, std::string_view bytes, const ReportSources& report);

}  // namespace toto::server
