#include "cli/settings/env_file.h"

#include <algorithm>
#include <optional>

#include "base/assignment.h"
#include "base/text.h"

namespace toto::cli {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
  });
}

// One assignment as the shell reads it; several of them or commands on one line are none.
std::optional<Assignment> shell_assignment(std::string_view line) {
  const auto found = parse_assignment(line);
  if (!found || !found->well_quoted || found->has_blanks || !is_name(found->name)) return {};
  if (!found->in_quotes && found->value.find_first_of(" \t;&|") != std::string_view::npos)
    return {};
  return found;
}

bool assigns(std::string_view line, std::string_view name) {
  const auto found = shell_assignment(line);
  return found && found->name == name;
}

bool is_word(char c) { return is_name(std::string_view(&c, 1)); }

// Whether a line may do something to a variable, other than set another one.
bool touches(std::string_view line, std::string_view name) {
  if (is_blank_or_comment(line)) return false;
  if (shell_assignment(line)) return assigns(line, name);
  for (std::size_t at = line.find(name); at != std::string_view::npos;
       at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

EnvFile::EnvFile(std::string_view text) {
  for (const NumberedLine& line : lines_of(text)) lines_.emplace_back(line.text);
}

std::optional<std::string> EnvFile::find(std::string_view name) const {
  std::optional<std::string> value;
  for (const std::string& line : lines_) {
    if (!assigns(line, name)) continue;
    if (const auto found = shell_assignment(line)) value = found->value;
  }
  return value;
}

void EnvFile::set(std::string_view name, std::string_view value) {
  const auto assigns_it = [&](const std::string& line) { return assigns(line, name); };
  const auto touches_it = [&](const std::string& line) { return touches(line, name); };
  std::string wanted = "export " + std::string(name) + "=" + std::string(value);
  const auto last = std::find_if(lines_.rbegin(), lines_.rend(), assigns_it);
  if (last != lines_.rend() && std::none_of(lines_.rbegin(), last, touches_it)) {
    const auto place = std::prev(last.base());
    *place = std::move(wanted);
    lines_.erase(std::remove_if(lines_.begin(), place, assigns_it), place);
    return;
  }
  std::erase_if(lines_, assigns_it);
  lines_.push_back(std::move(wanted));
}

std::string EnvFile::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

}  // namespace toto::cli
