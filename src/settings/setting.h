// One row per setting: its names, the values it takes, its help and how it is stored. The flags,
// the variables, the config file, `toto config show`, HTTP and Python all follow from these rows,
// so that a new setting is one row and the field it is stored in.
//
//   engine_settings.cc    how every command computes: mode, dtype, threads, ...
//   forecast_settings.cc  what a forecast is asked for: horizon, quantiles, samples, ...
//   src/backtest/spec_fields.cc, server/serve_settings.cc: the same for backtests and the service
//
// Nothing here reads the environment or a file: the command does (cli/settings/).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/json.h"
#include "toto/toto.h"

namespace toto::settings {

enum class Type {
  toggle,
  whole,
  decimal,
  bytes,  // "64K", "256M", "1G" or a number
  text,
  time,    // text, or a whole number such as 20240131
  names,   // a list of texts, or one text with commas
  levels,  // a list of numbers inside (0, 1), or one text with commas
  factor,  // a finite number above 0, or "auto"
};

// Where a setting can be given.
enum Door : unsigned {
  kFlag = 1,    // of the commands that declare it
  kFile = 2,    // the config file, and its variables; `toto config show` lists it
  kHttp = 4,    // a field of the /v1 requests
  kPython = 8,  // a keyword of Engine
};

struct Setting {
  std::string_view name;  // in HTTP, Python and results.json: "plan_cache_size"
  Type type = Type::text;
  unsigned doors = 0;
  bool nullable = false;                       // null leaves it to the run
  double low = 0, high = 0;                    // of numbers and bytes
  std::string_view placeholder = {};           // for the value of the flag in --help
  std::string_view help = {};                  // without the default; see help_of
  std::string_view details = {};               // what only --help adds
  std::vector<std::string_view> choices = {};  // of texts and names; empty: any
  // A text that is not accepted is reported as "expected <expected>".
  bool (*accepts)(std::string_view text) = nullptr;
  std::string_view expected = {};
  std::vector<std::string> variables = {};  // the first one set counts
  std::string_view section = {};            // "serve": its keys are "serve-port"
  std::string_view otherwise = {};          // the default in words, where it is not one value
  bool secret = false;                      // never shown
  bool of_engine = false;                   // of a backtest: chosen with the engine, not for a run
  io::Json standard = {};                   // the default; null: none, or chosen by the run

  std::string key() const;        // in the config file: "plan-cache-size", "serve-port"
  std::string flag() const;       // "--plan-cache-size"; of a switch that is on: "--no-lag-test"
  std::string flag_help() const;  // help with details, choices and default
  std::string default_text() const;
};

// How a value reads in a table: text as it is, numbers in digits, sizes as "256M".
std::string text_of(const Setting& setting, const io::Json& value);
// The variable of a setting for `toto serve` alone: "TOTO_SERVE_MAX_BODY" of max_body.
std::string service_variable(std::string_view name);
// A size as one would type it: 268435456 is "256M".
std::string bytes_text(std::uint64_t bytes);

// A value as it was given.
struct Given {
  io::Json value;      // text is read as what the setting's type asks for
  std::string origin;  // begins messages about it: "--fee-bps", "toto.conf:3: seed"
  ErrorCode code = ErrorCode::invalid_argument;  // of these messages
  bool typed = false;                            // JSON of a request: "5" is text, not a number
  std::optional<double> high = {};               // a smaller limit than the setting's
};

// The value in the setting's type and range; whole numbers beyond int64 wrap around.
// Error(given.code): what is wrong, the value found, what was expected.
io::Json checked(const Setting& setting, const Given& given);

// A setting and where it is stored.
template <typename Target>
struct Field : Setting {
  void (*set)(Target& target, const io::Json& value) = nullptr;  // a checked value
  io::Json (*get)(const Target& target) = nullptr;               // null: left to the run

  // The rest of a row, each in its place or not at all.
  Field words(std::string_view value_placeholder, std::string_view text,
              std::string_view more = {}) && {
    placeholder = value_placeholder;
    help = text;
    details = more;
    return std::move(*this);
  }
  Field at(unsigned where) && {
    doors = where;
    return std::move(*this);
  }
  Field from(std::vector<std::string> names) && {
    variables = std::move(names);
    return std::move(*this);
  }
  Field or_else(std::string_view default_words) && {
    otherwise = default_words;
    return std::move(*this);
  }
  Field only(bool (*test)(std::string_view), std::string_view what) && {
    accepts = test;
    expected = what;
    return std::move(*this);
  }
};

// Rows of a table that stores into `Target`. `Access` is a member pointer, or a lambda from the
// target to the place: [](auto& s) -> auto& { return s.engine.mode; }
// The number a place holds, also if it is optional.
template <typename Place>
struct NumberOf {
  using type = Place;
};
template <typename Number>
struct NumberOf<std::optional<Number>> {
  using type = Number;
};

template <typename Target>
struct Rows {
  using Row = Field<Target>;
  using Get = io::Json (*)(const Target&);

  // Null is allowed if the place is optional or `get` is given.
  template <auto Access>
  static Row number(std::string_view name, double low, double high, Get get = nullptr) {
    using Place = std::decay_t<std::invoke_result_t<decltype(Access), Target&>>;
    constexpr bool kOptional = !std::is_arithmetic_v<Place>;
    using Number = typename NumberOf<Place>::type;
    constexpr bool kWhole = std::is_integral_v<Number>;
    const Get usual = [](const Target& target) {
      const auto& place = std::invoke(Access, target);
      if constexpr (kOptional) {
        return place ? io::json_number(static_cast<double>(*place)) : io::Json();
      } else {
        return io::json_number(static_cast<double>(place));
      }
    };
    return {{.name = name,
             .type = kWhole ? Type::whole : Type::decimal,
             .nullable = kOptional || get != nullptr,
             .low = low,
             .high = high},
            [](Target& target, const io::Json& value) {
              if constexpr (kWhole) {
                std::invoke(Access, target) = static_cast<Number>(value.integer);
              } else {
                std::invoke(Access, target) = value.real;
              }
            },
            get != nullptr ? get : usual};
  }

  template <auto Access>
  static Row bytes(std::string_view name, double low, double high) {
    Row row = number<Access>(name, low, high);
    row.type = Type::bytes;
    return row;
  }

  template <auto Access>
  static Row toggle(std::string_view name) {
    return {
        {.name = name, .type = Type::toggle},
        [](Target& target, const io::Json& value) { std::invoke(Access, target) = value.boolean; },
        [](const Target& target) { return io::json_toggle(std::invoke(Access, target)); }};
  }

  // A place whose values have names: `Parse` reads them, name_of writes them.
  template <auto Access, auto Parse>
  static Row named(std::string_view name, const std::vector<std::string_view>& choices = {}) {
    return {
        {.name = name, .type = Type::text, .choices = choices},
        [](Target& target, const io::Json& value) {
          std::invoke(Access, target) = Parse(value.string);
        },
        [](const Target& target) { return io::json_text(name_of(std::invoke(Access, target))); }};
  }

  // Empty text is null: there is none.
  template <auto Access>
  static Row text(std::string_view name) {
    return {
        {.name = name, .type = Type::text, .nullable = true},
        [](Target& target, const io::Json& value) { std::invoke(Access, target) = value.string; },
        [](const Target& target) {
          const std::string& place = std::invoke(Access, target);
          return place.empty() ? io::Json() : io::json_text(place);
        }};
  }
};

// Rows with their defaults: what a new target holds.
template <typename Target>
std::vector<Field<Target>> table(std::vector<Field<Target>> rows) {
  const Target fresh;
  for (Field<Target>& row : rows) row.standard = row.get(fresh);
  return rows;
}

// Checks the value and stores it. Error(given.code) beginning with the origin.
template <typename Target>
void read(const Field<Target>& field, const Given& given, Target& target) {
  const io::Json value = checked(field, given);
  try {
    field.set(target, value);
  } catch (const Error& error) {
    throw Error(given.code, given.origin + ": " + error.what());
  }
}

template <typename Target>
const Field<Target>* find(std::span<const Field<Target>> fields, std::string_view name) {
  for (const Field<Target>& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

}  // namespace toto::settings
