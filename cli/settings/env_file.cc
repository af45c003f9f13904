#include "cli/settings/env_file.h"
#include "base/text.h"

#include <algorithm>

namespace toto::cli {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

struct Assignment {
  std::string_view name;
  std::string_view value;
};

// `export NAME=value` or `NAME=value`, a comment behind it allowed; several assignments or commands
// on one line are somebody else's business.
std::optional<Assignment> parse(std::string_view line) {
  line = trimmed(line);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("export ")) line = trimmed(line.substr(7));
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || !is_name(line.substr(0, equals))) return std::nullopt;
  std::string_view value = line.substr(equals + 1);
  std::string_view rest;
  if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
    const std::size_t end = value.find(value.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    rest = value.substr(end + 1);
    value = value.substr(1, end - 1);
  } else {
    const std::size_t end = std::min(value.find_first_of(" \t;&|"), value.size());
    rest = value.substr(end);
    value = value.substr(0, end);
  }
  rest = trimmed(rest);
  if (!rest.empty() && rest.front() != '#') return std::nullopt;
  return Assignment{.name = line.substr(0, equals), .value = value};
}

bool is_word(char c) { return is_name(std::string_view(&c, 1)); }

// Whether a line may do something to a variable, other than set another one.
bool touches(std::string_view line, std::string_view name) {
  line = trimmed(line);
  if (line.starts_with('#')) return false;
  if (const auto assignment = parse(line)) return assignment->name == name;
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
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines_.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<std::string> EnvFile::find(std::string_view name) const {
  std::optional<std::string> value;
  for (const std::string& line : lines_) {
    if (const auto assignment = parse(line); assignment && assignment->name == name) {
      value = assignment->value;
    }
  }
  return value;
}

void EnvFile::set(std::string_view name, std::string_view value) {
  const auto assigns = [&](const std::string& line) {
    const auto assignment = parse(line);
    return assignment && assignment->name == name;
  };
  std::string wanted = "export " + std::string(name) + "=" + std::string(value);
  const auto last = std::find_if(lines_.rbegin(), lines_.rend(), assigns);
  const bool is_final = last != lines_.rend() &&
                        std::none_of(lines_.rbegin(), last,
                                     [&](const std::string& line) { return touches(line, name); });
  if (is_final) {
    const auto place = std::prev(last.base());
    *place = std::move(wanted);
    lines_.erase(std::remove_if(lines_.begin(), place, assigns), place);
    return;
  }
  std::erase_if(lines_, assigns);
  lines_.push_back(std::move(wanted));
}

std::string EnvFile::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

}  // namespace toto::cli
