#include "settings/setting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace toto::settings {
namespace {

using io::Json;

[[noreturn]] void complain(const Given& given, std::string_view expected) {
  fail(given.code, "{} is {}, expected {}", given.origin, io::described(given.value), expected);
}

bool is_text(const Given& given) { return given.value.kind == Json::Kind::string; }

// The whole text, or nothing. Not strtol, to which "010" is eight and "0x10" sixteen.
template <typename Number>
std::optional<Number> parsed(std::string_view text) {
  Number number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end) return {};
  return number;
}

std::optional<std::uint64_t> parsed_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";  // thousands of 1024
  int shift = 0;
  if (!text.empty()) {
    const std::size_t unit = kUnits.find(text.back());
    if (unit != std::string_view::npos) shift = 10 * static_cast<int>(unit + 1);
  }
  if (shift > 0) text.remove_suffix(1);
  const auto number = parsed<std::uint64_t>(text);
  if (!number || *number > (UINT64_MAX >> shift)) return {};
  return *number << shift;
}

Json whole_number(const Setting& setting, const Given& given) {
  std::optional<std::uint64_t> number;
  if (is_text(given) && !given.typed) {
    number = setting.type == Type::bytes ? parsed_bytes(given.value.string)
                                         : parsed<std::uint64_t>(given.value.string);
  }
  if (given.value.kind == Json::Kind::integer && given.value.integer >= 0) {
    number = static_cast<std::uint64_t>(given.value.integer);
  }
  if (given.value.kind == Json::Kind::real && !given.value.string.empty()) {
    number = parsed<std::uint64_t>(given.value.string);
  }
  const double high = given.high.value_or(setting.high);
  const auto as_double = static_cast<double>(number.value_or(0));
  if (!number || as_double < setting.low || as_double > high) {
    const auto most = high >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(high);
    const auto least = static_cast<std::uint64_t>(setting.low);
    complain(given, setting.type == Type::bytes
                        ? fmt::format("{} to {} bytes, such as 64K, 256M or 1G", least, most)
                        : fmt::format("a whole number from {} to {}", least, most));
  }
  Json value;
  value.kind = Json::Kind::integer;
  value.integer = static_cast<std::int64_t>(*number);
  value.real = as_double;
  return value;
}

Json decimal_number(const Setting& setting, const Given& given) {
  std::optional<double> number;
  if (is_text(given) && !given.typed) number = parsed<double>(given.value.string);
  if (given.value.is_number()) number = given.value.real;
  if (!number || !(*number >= setting.low && *number <= setting.high)) {
    complain(given, fmt::format("a number from {} to {}", setting.low, setting.high));
  }
  return io::json_number(*number);
}

Json toggle(const Given& given) {
  if (given.value.kind == Json::Kind::boolean) return given.value;
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) {
      return equal_ignoring_case(given.value.string, word);
    });
  };
  if (is_text(given) && !given.typed) {
    if (is_one_of({"1", "true", "yes", "on"})) return io::json_toggle(true);
    if (is_one_of({"0", "false", "no", "off"})) return io::json_toggle(false);
    complain(given, "1 or 0");
  }
  complain(given, "true or false");
}

Json text(const Setting& setting, const Given& given) {
  if (setting.type == Type::time && given.value.kind == Json::Kind::integer) {
    return io::json_text(fmt::format("{}", given.value.integer));  // 20240131, or a step
  }
  if (!is_text(given)) complain(given, "text");
  const std::string& value = given.value.string;
  if (!setting.choices.empty() && std::ranges::count(setting.choices, value) == 0) {
    complain(given, alternatives(setting.choices));
  }
  if (setting.accepts != nullptr && !setting.accepts(value)) complain(given, setting.expected);
  return given.value;
}

std::vector<std::string_view> parts_of(const Given& given) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = given.value.string;;) {
    const std::size_t comma = rest.find(',');
    parts.push_back(trimmed(rest.substr(0, comma)));
    if (parts.back().empty()) complain(given, "a comma-separated list without empty parts");
    if (comma == std::string_view::npos) return parts;
    rest.remove_prefix(comma + 1);
  }
}

Json names(const Given& given) {
  if (given.value.kind == Json::Kind::array) {
    for (const Json& item : given.value.array) {
      if (item.kind == Json::Kind::string) continue;
      fail(given.code, "{} holds {}, expected text", given.origin, io::described(item));
    }
    return given.value;
  }
  if (!is_text(given)) complain(given, "a list");
  Json list = io::json_names();
  for (const std::string_view part : parts_of(given)) list.array.push_back(io::json_text(part));
  return list;
}

Json levels(const Given& given) {
  constexpr std::size_t kMostLevels = 1000;
  Json list = io::json_names();
  const auto add = [&](std::optional<double> level, const std::string& found) {
    if (!level || !(*level > 0 && *level < 1)) {
      fail(given.code, "{} holds {}, expected levels strictly between 0 and 1, such as 0.1,0.5,0.9",
           given.origin, found);
    }
    list.array.push_back(io::json_number(*level));
  };
  if (is_text(given) && (!given.typed || !given.value.string.empty())) {
    for (const std::string_view part : parts_of(given)) add(parsed<double>(part), quoted(part));
  } else if (given.value.kind == Json::Kind::array) {
    for (const Json& item : given.value.array) {
      add(item.is_number() ? std::optional(item.real) : std::nullopt, io::described(item));
    }
  } else if (!is_text(given)) {
    complain(given, "a list");
  }
  if (list.array.size() > kMostLevels) {
    fail(given.code, "{} has {} levels, expected at most {}", given.origin, list.array.size(),
         kMostLevels);
  }
  return list;
}

Json factor(const Given& given) {
  constexpr std::string_view kAutomatic = "auto";
  std::optional<double> number;
  if (is_text(given)) {
    if (given.value.string == kAutomatic) return given.value;
    if (!given.typed) number = parsed<double>(given.value.string);
  }
  if (given.value.is_number()) number = given.value.real;
  if (!number || !std::isfinite(*number) || !(*number > 0)) {
    complain(given, "auto, or a finite number above 0");
  }
  return io::json_number(*number);
}

std::string hyphenated(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

}  // namespace

std::string Setting::key() const {
  return section.empty() ? hyphenated(name) : fmt::format("{}-{}", section, hyphenated(name));
}

std::string Setting::flag() const {
  const bool negated = type == Type::toggle && standard.boolean;
  return (negated ? "--no-" : "--") + hyphenated(name);
}

std::string Setting::default_text() const {
  return otherwise.empty() ? text_of(*this, standard) : std::string(otherwise);
}

std::string Setting::flag_help() const {
  std::string text(help);
  if (type == Type::names && !choices.empty())
    text += fmt::format(": {}", fmt::join(choices, ", "));
  const bool has_default = !otherwise.empty() || standard.kind != Json::Kind::null;
  if (type != Type::toggle && has_default) text += fmt::format(" (default {})", default_text());
  if (type == Type::toggle && (doors & kFile) != 0) {
    text += standard.boolean ? " (default on)" : " (default off)";
  }
  if (!details.empty()) text += fmt::format("; {}", details);
  return text;
}

std::string text_of(const Setting& setting, const Json& value) {
  switch (value.kind) {
    case Json::Kind::null:
      return "none";
    case Json::Kind::boolean:
      return value.boolean ? "1" : "0";
    case Json::Kind::string:
      return value.string;
    case Json::Kind::integer:
      if (setting.type == Type::bytes) return bytes_text(static_cast<std::uint64_t>(value.integer));
      return fmt::format("{}", value.integer);
    case Json::Kind::real:
      return fmt::format("{}", value.real);
    case Json::Kind::array: {
      std::vector<std::string> parts;
      parts.reserve(value.array.size());
      for (const Json& item : value.array) parts.push_back(text_of(setting, item));
      return fmt::format("{}", fmt::join(parts, ","));
    }
    case Json::Kind::object:
      break;
  }
  return io::described(value);
}

std::string service_variable(std::string_view name) { return "TOTO_SERVE_" + upper_case(name); }

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits = " KMG";
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kUnits[unit]);
}

Json checked(const Setting& setting, const Given& given) {
  switch (setting.type) {
    case Type::toggle:
      return toggle(given);
    case Type::whole:
    case Type::bytes:
      return whole_number(setting, given);
    case Type::decimal:
      return decimal_number(setting, given);
    case Type::names:
      return names(given);
    case Type::levels:
      return levels(given);
    case Type::factor:
      return factor(given);
    case Type::text:
    case Type::time:
      break;
  }
  return text(setting, given);
}

}  // namespace toto::settings
