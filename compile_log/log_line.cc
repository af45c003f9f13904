#include "compile_log/log_line.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace toto::compile_log {
namespace {

// Whether `text` at position `at` matches `pattern`, in which 0 matches any digit.
bool has_form(std::string_view text, std::size_t at, std::string_view pattern) {
  if (text.size() < at + pattern.size()) return false;
  return std::equal(pattern.begin(), pattern.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char form, char c) { return form == '0' ? is_digit(c) : form == c; });
}

// Removes "[x]" from the beginning of `text`, after optional blanks, and returns x.
std::optional<std::string_view> take_bracket(std::string_view& text) {
  const std::size_t open = text.find_first_not_of(' ');
  if (open == std::string_view::npos || text[open] != '[') return std::nullopt;
  const std::size_t close = text.find(']', open);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  return inside;
}

// "0/1", "6/7_2", "!0/3/0": the id of a compilation. Messages may begin with brackets as well.
bool is_compile_id(std::string_view text) {
  return text.find('/') != std::string_view::npos &&
         text.find_first_not_of("0123456789/_!?-") == std::string_view::npos;
}

// Parses the part after the source location: "[0/1] [__recompiles] text".
void take_tags(std::string_view rest, LogLine& line) {
  for (std::string_view next = rest;;) {
    const auto inside = take_bracket(next);
    if (!inside) break;
    if (inside->starts_with("__")) {
      line.artifact = inside->substr(2);
    } else if (!is_compile_id(*inside)) {
      break;
    }
    rest = next;
  }
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  line.text = rest;
}

// The launcher's name of the process that wrote the line: "[rank0]:", "[default0]:".
std::string_view launcher_tag(std::string_view before) {
  if (!before.ends_with("]:")) return {};
  before.remove_suffix(2);
  const std::size_t open = before.rfind('[');
  return open == std::string_view::npos ? std::string_view() : before.substr(open + 1);
}

constexpr std::string_view kNewForm = "0000 00:00:00.000000 ";
constexpr std::string_view kOldForm = "[0000-00-00 00:00:00,000] ";

// Parses the prefix of PyTorch 2.2 and later, whose level letter is at `at`; false if there is
// none.
bool parse_new(std::string_view whole, std::size_t at, LogLine& line) {
  constexpr std::string_view kLevels = "VIWEC";
  if (kLevels.find(whole[at]) == std::string_view::npos || !has_form(whole, at + 1, kNewForm)) {
    return false;
  }
  std::string_view rest = whole.substr(at + 1 + kNewForm.size());
  const std::size_t pid_begin = std::min(rest.find_first_not_of(' '), rest.size());
  const std::size_t pid_end = rest.find(' ', pid_begin);
  constexpr std::size_t kLongestPlace = 1024;  // bounds the search in crafted lines
  const std::size_t close = rest.substr(0, kLongestPlace).find(']', pid_begin);
  if (pid_end == std::string_view::npos || close == std::string_view::npos || close < pid_end) {
    return false;
  }
  const std::string_view pid = rest.substr(pid_begin, pid_end - pid_begin);
  if (pid.empty() || pid.size() > 10 || !std::all_of(pid.begin(), pid.end(), is_digit)) {
    return false;
  }
  const std::string_view tag = launcher_tag(whole.substr(0, at));
  if (!tag.empty()) line.writer = std::string(tag.substr(0, 64)) + "/";
  line.writer += pid;
  line.source = rest.substr(pid_end + 1, close - pid_end - 1);
  line.is_detail = whole[at] == kLevels.front();
  take_tags(rest.substr(close + 1), line);
  return line.has_prefix();
}

// Parses the prefix of PyTorch before 2.2, which begins at `at`; false if there is none.
bool parse_old(std::string_view whole, std::size_t at, LogLine& line) {
  if (whole[at] != '[' || !has_form(whole, at, kOldForm)) return false;
  std::string_view rest = whole.substr(at + kOldForm.size());
  std::string_view next = rest;
  if (const auto id = take_bracket(next); id && is_compile_id(*id)) rest = next;
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::size_t end = rest.find(": [");
  if (end == std::string_view::npos || !rest.starts_with("torch")) return false;
  line.source = rest.substr(0, end);
  if (const std::size_t mark = line.source.find(".__"); mark != std::string_view::npos) {
    line.artifact = line.source.substr(mark + 3);
  }
  const std::size_t close = rest.find(']', end);
  if (close == std::string_view::npos) return false;
  line.is_detail = rest.substr(end).starts_with(": [DEBUG]");
  rest.remove_prefix(close + 1);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  line.text = rest;
  return true;
}

}  // namespace

LogLine parse_log_line(std::string_view whole) {
  // Both forms contain "00:00:00", so only positions around colons need a closer look.
  for (std::size_t colon = whole.find(':'); colon != std::string_view::npos;
       colon = whole.find(':', colon + 1)) {
    constexpr std::size_t kNewColon = 8;   // of "V0628 10:"
    constexpr std::size_t kOldColon = 14;  // of "[2023-10-01 10:"
    LogLine line;
    if (colon >= kNewColon && parse_new(whole, colon - kNewColon, line)) return line;
    line = {};
    if (colon >= kOldColon && parse_old(whole, colon - kOldColon, line)) return line;
  }
  return {.text = whole};
}

void remove_colours(std::string& line) {
  constexpr char kEscape = '\x1b';
  std::size_t from = line.find(kEscape);
  if (from == std::string::npos) return;
  std::size_t to = from;
  while (from < line.size()) {
    if (line[from] == kEscape && from + 1 < line.size() && line[from + 1] == '[') {
      // Parameters, then one letter that ends it.
      from += 2;
      while (from < line.size() && (line[from] < '@' || line[from] > '~')) ++from;
      if (from < line.size()) ++from;
    } else {
      line[to++] = line[from++];
    }
  }
  line.resize(to);
}

}  // namespace toto::compile_log
