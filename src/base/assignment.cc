#include "base/assignment.h"

#include <algorithm>

#include "base/text.h"

namespace toto {
namespace {

std::string_view trimmed_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return trimmed(line);
}

}  // namespace

std::vector<NumberedLine> lines_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<NumberedLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({.number = lines.size() + 1, .text = text.substr(0, end)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_blank_or_comment(std::string_view line) {
  line = trimmed_line(line);
  return line.empty() || line.front() == '#';
}

std::optional<Assignment> parse_assignment(std::string_view line) {
  if (is_blank_or_comment(line)) return std::nullopt;
  line = trimmed_line(line);
  if (line.starts_with("export ")) line = trimmed(line.substr(7));
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view before = line.substr(0, equals), after = line.substr(equals + 1);
  Assignment found{.name = trimmed(before), .value = trimmed(after)};
  found.has_blanks = found.name.size() != before.size() || found.value.size() != after.size();
  std::string_view& value = found.value;
  if (value.empty() || (value.front() != '"' && value.front() != '\'')) {
    value =
        value.starts_with('#') ? std::string_view() : trimmed(value.substr(0, value.find(" #")));
    return found;
  }
  found.in_quotes = true;
  const std::size_t end = value.find(value.front(), 1);
  found.well_quoted = end != std::string_view::npos && is_blank_or_comment(value.substr(end + 1));
  if (found.well_quoted) value = value.substr(1, end - 1);
  return found;
}

}  // namespace toto
