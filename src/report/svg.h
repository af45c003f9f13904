// The parts of drawings and pages: escaped text, estimated text widths, XML elements and path data.
// Independent of the locale.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace toto::report {

// Text from a file, safe to display: invalid UTF-8, control characters and marks that reverse the
// reading direction become U+FFFD, tabs and line breaks become a space.
std::string clean_text(std::string_view text);

// clean_text, then & < > " ' as entities, for text and quoted attributes of XML and HTML.
std::string escape_xml(std::string_view text);

// JSON for the inside of <script>: < > &, which occur only inside its strings, become \u003c and
// the like, so it contains no end tag and no comment.
std::string escape_script_json(std::string_view json);

inline constexpr double kFontSize = 13;
inline constexpr double kSmallSize = 12;  // ticks, footnote and note, as in the style sheet

// An upper estimate for the common sans-serif fonts, in the unit of `font_size`.
double text_width(std::string_view text, double font_size);

// The text itself, or as much of it as fits followed by an ellipsis.
std::string fit_text(std::string_view text, double font_size, double width);

// Broken at spaces into at most `max_lines` lines; text that does not fit ends in an ellipsis.
std::vector<std::string> wrap_text(std::string_view text, double font_size, double width,
                                   std::size_t max_lines);

// A coordinate with at most one decimal: "12", "12.3", never "-0". Error(internal) for NaN and
// infinities.
std::string coordinate(double value);

// The d attribute of a path, in absolute commands.
class PathData {
 public:
  PathData& move_to(double x, double y) { return add('M', x, y); }
  PathData& line_to(double x, double y) { return add('L', x, y); }
  PathData& close() {
    text_ += 'Z';
    return *this;
  }
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  PathData& add(char command, double x, double y);
  std::string text_;
};

// Writes elements; values and text are escaped here and nowhere else. close() closes the innermost
// open element.
class SvgWriter {
 public:
  struct Attribute {
    Attribute(std::string_view attribute, std::string_view text) : name(attribute), value(text) {}
    Attribute(std::string_view attribute, const char* text) : name(attribute), value(text) {}
    Attribute(std::string_view attribute, double number)
        : name(attribute), value(coordinate(number)) {}
    std::string_view name;
    std::string value;
  };
  using Attributes = std::initializer_list<Attribute>;

  SvgWriter& open(std::string_view tag, Attributes attributes = {});
  SvgWriter& close();
  SvgWriter& element(std::string_view tag, Attributes attributes);
  SvgWriter& text(std::string_view css_class, double x, double y, std::string_view content,
                  std::string_view anchor = "start");
  const std::string& markup() const { return markup_; }

 private:
  void start(std::string_view tag, Attributes attributes);
  std::string markup_;
  std::vector<std::string> open_tags_;
};

}  // namespace toto::report
