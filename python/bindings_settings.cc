// The tables of settings for Python: names, types, ranges, defaults and variables, so that
// totocpp/*.py repeats none of them; and options of a forecast read by their rows.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string_view>

#include "backtest/backtest_spec.h"
#include "base/error.h"
#include "bindings.h"
#include "settings/engine_settings.h"
#include "settings/forecast_settings.h"

namespace toto::python {
namespace {

using io::Json;
using settings::Setting;
using settings::Type;

std::string_view name_of(Type type) {
  switch (type) {
    case Type::toggle:
      return "toggle";
    case Type::whole:
      return "whole";
    case Type::decimal:
      return "decimal";
    case Type::bytes:
      return "bytes";
    case Type::text:
      return "text";
    case Type::time:
      return "time";
    case Type::names:
      return "names";
    case Type::levels:
      return "levels";
    case Type::factor:
      break;
  }
  return "factor";
}

nb::object object_of(const Json& value) {
  switch (value.kind) {
    case Json::Kind::boolean:
      return nb::bool_(value.boolean);
    case Json::Kind::integer:
      return nb::int_(value.integer);
    case Json::Kind::real:
      return nb::float_(value.real);
    case Json::Kind::string:
      return nb::str(value.string.data(), value.string.size());
    case Json::Kind::array: {
      nb::list items;
      for (const Json& item : value.array) items.append(object_of(item));
      return nb::tuple(items);
    }
    case Json::Kind::null:
    case Json::Kind::object:
      break;
  }
  return nb::none();
}

// The fields of totocpp._rows.Row.
nb::tuple row_of(const Setting& setting) {
  nb::object standard = object_of(setting.standard);
  // A seed is text in JSON, where a number may be rounded.
  if (setting.type == Type::whole && setting.standard.kind == Json::Kind::string) {
    standard = nb::int_(nb::str(setting.standard.string.c_str()));
  }
  nb::list variables, choices;
  for (const std::string& variable : setting.variables) variables.append(variable);
  for (const std::string_view choice : setting.choices) choices.append(choice);
  return nb::make_tuple(python_name(setting.name), name_of(setting.type), setting.nullable,
                        (setting.doors & settings::kPython) != 0, setting.low, setting.high,
                        standard, nb::tuple(variables), nb::tuple(choices));
}

template <typename Fields>
nb::list rows_of(const Fields& fields) {
  nb::list rows;
  for (const Setting& setting : fields) rows.append(row_of(setting));
  return rows;
}

// A value that totocpp/_rows.py has checked for its kind. An int beyond int64 as text.
Json json_of(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return io::json_toggle(nb::cast<bool>(value));
  if (nb::isinstance<nb::int_>(value)) {
    return io::json_text(nb::cast<std::string_view>(nb::str(value)));
  }
  if (nb::isinstance<nb::float_>(value)) return io::json_number(nb::cast<double>(value));
  if (nb::isinstance<nb::str>(value)) return io::json_text(nb::cast<std::string_view>(value));
  Json list = io::json_names();
  for (const nb::handle item : value) list.array.push_back(json_of(item));
  return list;
}

}  // namespace

std::string_view python_name(std::string_view name) {
  return name == "from" ? "start" : name == "to" ? "end" : name;
}

ForecastOptions forecast_options(const nb::dict& options) {
  settings::ForecastSettings target;
  for (const auto& [name, value] : options) {
    const auto key = nb::cast<std::string_view>(name);
    const auto* const row = settings::find(settings::forecast_fields(), key);
    if (row == nullptr) fail(ErrorCode::internal, "no option {}", key);
    read(*row, {.value = json_of(value), .origin = std::string(key)}, target);
  }
  return target.options;
}

void bind_settings(nb::module_& module) {
  module.attr("DEFAULT_PATHS") = kDefaultPaths;
  module.def(
      "engine_rows", [] { return rows_of(settings::engine_fields()); },
      nb::sig("def engine_rows() -> list[tuple[typing.Any, ...]]"));
  module.def(
      "forecast_rows", [] { return rows_of(settings::forecast_fields()); },
      nb::sig("def forecast_rows() -> list[tuple[typing.Any, ...]]"));
  module.def(
      "backtest_rows", [] { return rows_of(backtest::spec_fields()); },
      nb::sig("def backtest_rows() -> list[tuple[typing.Any, ...]]"));
}

}  // namespace toto::python
