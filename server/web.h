// The files of the page and the OpenAPI document, embedded at build time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/embedded_file.h"
#include "http_message.h"

namespace toto::server {

std::span<const EmbeddedFile> web_files();
// By the extension of a name; application/octet-stream if it is unknown.
std::string_view content_type(std::string_view name);

// The script and style sheet that a report may use inside the page's frame, as hashes for the
// content security policy: "sha256-...". Empty: none.
struct ReportSources {
  std::string script = {};
  std::string style = {};
};
// A file for a browser. Its policy allows only this server's scripts, styles and requests, and no
// framing.
HttpResponse page(std::string_view name, std::string_view bytes, const ReportSources& report);

}  // namespace toto::server
