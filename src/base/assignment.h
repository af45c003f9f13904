// Lines of `name = value`, as config files, settings of a backtest and shell exports have them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace toto {

struct NumberedLine {
  std::size_t number = 0;  // from 1
  std::string_view text;   // without its end
};
// All lines; a byte order mark before the first one is dropped.
std::vector<NumberedLine> lines_of(std::string_view text);

struct Assignment {
  std::string_view name;
  std::string_view value;  // without its quotes and the comment behind it
  bool in_quotes = false;
  bool well_quoted = true;  // one closing quote, and nothing but a comment behind it
  bool has_blanks = false;  // around the equals sign
};
// `name = value`, `export NAME=value`, `name = "a value"  # comment`. Nothing for a blank line, a
// comment or a line without an equals sign.
std::optional<Assignment> parse_assignment(std::string_view line);

bool is_blank_or_comment(std::string_view line);

}  // namespace toto
