#include "report/svg.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace toto::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

// One code point from the front of a text; a byte that belongs to none is taken for U+FFFD.
struct CodePoint {
  char32_t value;
  std::size_t length;
};

CodePoint first_code_point(std::string_view text) {
  const std::size_t length = utf8_length(text, 0);
  if (length == 0) return {0xFFFD, 1};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (length == 1) return {lead, 1};
  char32_t value = lead & (0x7FU >> length);
  for (const char tail : text.substr(1, length - 1)) {
    value = (value << 6) | (static_cast<unsigned char>(tail) & 0x3FU);
  }
  return {value, length};
}

// Not allowed in XML at all, invisible, or able to make a name read as another one.
bool is_unsafe(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || (c & 0xFFFE) == 0xFFFE;
}

// Advance widths in em, rounded up from DejaVu Sans, the widest of the fonts a viewer may choose.
double relative_width(char32_t c) {
  constexpr std::string_view kThin = " .,:;'|!-/\\ijlfrtI()[]";
  constexpr std::string_view kBroad = "&+<=>~#^";
  constexpr std::string_view kWide = "mwMW%@";
  const auto is_one_of = [c](std::string_view set) {
    return set.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (c >= 0x2070 && c < 0x20A0) return 0.45;  // superscripts and subscripts
  if (c >= 0x1100) return 1.05;                // CJK and emoji are square
  if (c >= 0x80 || is_one_of(kBroad)) return 0.85;
  if (is_one_of(kThin)) return 0.42;
  if (is_one_of(kWide)) return 1;
  return c >= 'A' && c <= 'Z' ? 0.79 : 0.64;
}

// Bytes of `text` whose width stays within `width`: whole code points only.
std::size_t fitting_bytes(std::string_view text, double font_size, double width) {
  std::size_t used = 0;
  while (used < text.size()) {
    const CodePoint point = first_code_point(text.substr(used));
    width -= font_size * relative_width(point.value);
    if (width < 0) break;
    used += point.length;
  }
  return used;
}

// Spaces only: clean_text has turned every other blank into one.
std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (point.value == '\t' || point.value == '\n' || point.value == '\r') {
      clean += ' ';
    } else if (point.value == 0xFFFD || is_unsafe(point.value)) {
      clean += kReplacement;
    } else {
      clean += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return clean;
}

std::string escape_xml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string escape_script_json(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

double text_width(std::string_view text, double font_size) {
  double width = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    width += relative_width(point.value);
    text.remove_prefix(point.length);
  }
  return width * font_size;
}

std::string fit_text(std::string_view text, double font_size, double width) {
  if (text_width(text, font_size) <= width) return std::string(text);
  const double room = width - text_width(kEllipsis, font_size);
  return std::string(trim(text.substr(0, fitting_bytes(text, font_size, room)))) +
         std::string(kEllipsis);
}

std::vector<std::string> wrap_text(std::string_view text, double font_size, double width,
                                   std::size_t max_lines) {
  const std::string clean = clean_text(text);
  std::string_view rest = trim(clean);
  std::vector<std::string> lines;
  while (!rest.empty() && lines.size() < max_lines) {
    std::size_t end = fitting_bytes(rest, font_size, width);
    const bool last_line = lines.size() + 1 == max_lines;
    const std::size_t space = end < rest.size() ? rest.rfind(' ', end) : std::string_view::npos;
    if (end == rest.size() || last_line || space == std::string_view::npos || space == 0) {
      // Ends here, or is one word wider than the line: cut rather than run over the edge.
      lines.push_back(fit_text(rest, font_size, width));
      break;
    }
    end = space;
    lines.emplace_back(trim(rest.substr(0, end)));
    rest = trim(rest.substr(end));
  }
  return lines;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) {
    fail(ErrorCode::internal,
         "a drawing has the coordinate {}, expected a finite number; this is a bug in the chart "
         "code",
         value);
  }
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

PathData& PathData::add(char command, double x, double y) {
  text_ += command;
  text_ += coordinate(x);
  text_ += ' ';
  text_ += coordinate(y);
  return *this;
}

void SvgWriter::start(std::string_view tag, Attributes attributes) {
  markup_ += '<';
  markup_ += tag;
  for (const Attribute& attribute : attributes) {
    markup_ += fmt::format(" {}=\"{}\"", attribute.name, escape_xml(attribute.value));
  }
}

SvgWriter& SvgWriter::open(std::string_view tag, Attributes attributes) {
  start(tag, attributes);
  markup_ += ">\n";
  open_tags_.emplace_back(tag);
  return *this;
}

SvgWriter& SvgWriter::close() {
  markup_ += fmt::format("</{}>\n", open_tags_.back());
  open_tags_.pop_back();
  return *this;
}

SvgWriter& SvgWriter::element(std::string_view tag, Attributes attributes) {
  start(tag, attributes);
  markup_ += "/>\n";
  return *this;
}

SvgWriter& SvgWriter::text(std::string_view css_class, double x, double y, std::string_view content,
                           std::string_view anchor) {
  start("text", {{"class", css_class}, {"x", x}, {"y", y}, {"text-anchor", anchor}});
  markup_ += fmt::format(">{}</text>\n", escape_xml(content));
  return *this;
}

}  // namespace toto::report
