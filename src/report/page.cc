#include "report/page.h"

#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <span>

#include "io/sha256.h"
#include "report/report_files.h"
#include "report/svg.h"

namespace toto::report {

namespace {

// The name of a text in a content security policy: "sha256-" and its digest in base64 (RFC 4648).
std::string policy_hash(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  io::Sha256 sha256;
  sha256.update(std::as_bytes(std::span(text)));
  const std::string hex = sha256.hex_digest();
  std::string base64;
  // Three hexadecimal digits make two of base64. 64 of them leave one over: 4 bits, written as a
  // last digit and padding.
  for (std::size_t i = 0; i < hex.size(); i += 3) {
    const std::string group = (hex.substr(i, 3) + "00").substr(0, 3);
    const unsigned long bits = std::stoul(group, nullptr, 16);
    base64 += kDigits[bits >> 6];
    if (i + 3 <= hex.size()) base64 += kDigits[bits & 63];
  }
  return "sha256-" + base64 + "=";
}

std::string joined(std::initializer_list<std::string_view> names) {
  std::string text = "\n";
  for (const std::string_view name : names) text += find_file(report_files(), name)->bytes;
  return text;
}

std::string page_style() { return joined({"chart.css", "report.css", "chart_reader.css"}); }
std::string page_script() { return joined({"chart_reader.js", "report.js"}); }

}  // namespace

std::string chart_style() { return joined({"chart.css"}); }
std::string page_style_hash() { return policy_hash(page_style()); }
std::string page_script_hash() { return policy_hash(page_script()); }

std::string html_page(std::string_view title, std::string_view body) {
  const std::string style = page_style(), script = page_script();
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}"
      "<script type=\"module\">{}</script>\n</body>\n</html>\n",
      policy_hash(style), policy_hash(script), escape_xml(title), style, escape_xml(title), body,
      script);
}

}  // namespace toto::report
