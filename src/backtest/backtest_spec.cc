#include "backtest/backtest_spec.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

using io::Json;
using Type = SpecField::Type;

const SpecField* find_field(std::string_view name) {
  const auto found = std::ranges::find(spec_fields(), name, &SpecField::name);
  return found == spec_fields().end() ? nullptr : &*found;
}

// --------------------------------------------------------------------------------------- reading

[[noreturn]] void complain(const GivenSetting& given, std::string_view expected) {
  fail(given.code, "{} is {}, expected {}", given.origin, io::described(given.value), expected);
}

template <typename Number>
std::optional<Number> parsed(std::string_view text) {
  Number number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end) return {};
  return number;
}

Json whole_number(const GivenSetting& given) {
  const SpecField& field = *given.field;
  std::optional<std::uint64_t> number;
  if (given.value.kind == Json::Kind::string) number = parsed<std::uint64_t>(given.value.string);
  if (given.value.kind == Json::Kind::integer && given.value.integer >= 0) {
    number = static_cast<std::uint64_t>(given.value.integer);
  }
  const auto as_double = static_cast<double>(number.value_or(0));
  if (!number || as_double < field.low || as_double > field.high) {
    const bool any = field.high >= 0x1p64;
    complain(given, fmt::format("a whole number from {} to {}", field.low,
                                any ? UINT64_MAX : static_cast<std::uint64_t>(field.high)));
  }
  Json value;
  value.kind = Json::Kind::integer;
  value.integer = static_cast<std::int64_t>(*number);
  return value;
}

Json decimal_number(const GivenSetting& given) {
  std::optional<double> number;
  if (given.value.kind == Json::Kind::string) number = parsed<double>(given.value.string);
  if (given.value.is_number()) number = given.value.real;
  if (!number || !(*number >= given.field->low && *number <= given.field->high)) {
    complain(given, fmt::format("a number from {} to {}", given.field->low, given.field->high));
  }
  return io::json_number(*number);
}

Json toggle(const GivenSetting& given) {
  const Json& value = given.value;
  if (value.kind == Json::Kind::boolean) return value;
  const bool is_text = value.kind == Json::Kind::string;
  if (!is_text || (value.string != "true" && value.string != "false")) {
    complain(given, "true or false");
  }
  return io::json_toggle(value.string == "true");
}

Json text(const GivenSetting& given) {
  const auto& [field, value, origin, code] = given;
  if (field->type == Type::time && value.kind == Json::Kind::integer) {  // 20240131, or a step
    return io::json_text(fmt::format("{}", value.integer));
  }
  if (value.kind != Json::Kind::string) complain(given, "text");
  if (!field->choices.empty() && std::ranges::count(field->choices, value.string) == 0) {
    complain(given, alternatives(field->choices));
  }
  return value;
}

// An array of texts, or one text with commas.
Json names(const GivenSetting& given) {
  const Json& value = given.value;
  if (value.kind == Json::Kind::array) {
    for (const Json& item : value.array) {
      if (item.kind == Json::Kind::string) continue;
      fail(given.code, "{} holds {}, expected text", given.origin, io::described(item));
    }
    return value;
  }
  if (value.kind != Json::Kind::string) complain(given, "a list");
  Json list = io::json_names();
  for (std::string_view rest = value.string;;) {
    const std::size_t comma = rest.find(',');
    list.array.push_back(io::json_text(trimmed(rest.substr(0, comma))));
    if (list.array.back().string.empty()) {
      complain(given, "a comma-separated list without empty parts");
    }
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

Json checked(const GivenSetting& given) {
  switch (given.field->type) {
    case Type::toggle:
      return toggle(given);
    case Type::whole:
      return whole_number(given);
    case Type::decimal:
      return decimal_number(given);
    case Type::names:
      return names(given);
    case Type::text:
    case Type::time:
      break;
  }
  return text(given);
}

const GivenSetting* find_given(const GivenSettings& settings, std::string_view name) {
  const auto found = std::ranges::find_if(
      settings, [&](const GivenSetting& item) { return item.field->name == name; });
  return found == settings.end() ? nullptr : &*found;
}

bool is_of_period(std::string_view name) {
  return name == "windows" || name == "from" || name == "to";
}

void check_together(const GivenSettings& settings, const BacktestSpec& spec) {
  const GivenSetting* windows = find_given(settings, "windows");
  const GivenSetting* from = find_given(settings, "from");
  const GivenSetting* to = find_given(settings, "to");
  if (windows != nullptr && (from != nullptr || to != nullptr)) {
    fail(windows->code, "{} and {} are both given, expected a number of bars or a period, not both",
         windows->origin, from != nullptr ? from->origin : to->origin);
  }
  if (from != nullptr && to != nullptr && spec.from && spec.to &&
      spec.from->first > spec.to->last) {
    fail(from->code, "{} is {} and {} is {}, expected {} first", from->origin,
         quoted(spec.from->text), to->origin, quoted(spec.to->text), from->origin);
  }
  const GivenSetting* scale = find_given(settings, "return_scale");
  const GivenSetting* transform = find_given(settings, "transform");
  if (scale != nullptr && transform != nullptr && spec.return_scale != 1 &&
      spec.transform == Transform::price) {
    fail(scale->code, "{} is {} with {} price, expected pct or log: prices are not scaled",
         scale->origin, spec.return_scale, transform->origin);
  }
}

GivenSetting given_setting(std::string_view name, Json value, const std::string& where,
                           ErrorCode code) {
  const std::string prefix = where.empty() ? "" : where + ": ";
  if (const SpecField* field = find_field(name)) {
    return {field, std::move(value), prefix + std::string(name), code};
  }
  std::vector<std::string_view> known;
  for (const SpecField& field : spec_fields()) known.push_back(field.name);
  fail(code, "{}there is no setting {}{}", prefix, quoted(name), did_you_mean(name, known));
}

}  // namespace

TimeBound parse_bound(std::string_view text) {
  TimeBound bound{.text = std::string(text)};
  tables::TimeColumn column;
  const std::string complaint = column.read(text, bound.first);
  if (!complaint.empty()) fail(ErrorCode::invalid_argument, "{}", complaint);
  bound.style = column.style();
  bound.last = bound.first;
  if (bound.style.month_only) {
    const std::int64_t month = tables::month_number(tables::civil_date(bound.first));
    bound.last = tables::midnight(tables::first_of_month(month + 1)) - 1;
  } else if (!bound.style.has_clock && !bound.style.steps) {
    bound.last = bound.first + tables::kDay - 1;
  }
  return bound;
}

std::vector<const Strategy*> every_strategy() {
  std::vector<const Strategy*> all;
  for (const Strategy& strategy : all_strategies()) all.push_back(&strategy);
  return all;
}

Point BacktestSpec::chosen_point() const {
  return point.value_or(parse_point(samples > 0 ? "trimmed_mean_10" : "median"));
}

void BacktestSpec::set_engine(std::string name, const EngineOptions& options) {
  model = std::move(name);
  mode = options.mode;
  dtype = options.dtype;
  isa = options.isa;
  threads = options.threads;
  no_kv_cache = !options.use_kv_cache;
}

GivenSettings settings_of(const Json& object, const std::string& where, ErrorCode code) {
  if (object.kind != Json::Kind::object) {
    fail(code, "{} is {}, expected an object", where, io::described(object));
  }
  GivenSettings settings;
  for (const auto& [name, value] : object.object) {
    GivenSetting setting = given_setting(name, value, where, code);
    if (value.kind != Json::Kind::null) settings.push_back(std::move(setting));
  }
  return settings;
}

GivenSettings settings_of_lines(std::string_view text, const std::string& path) {
  GivenSettings settings;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    if (line.ends_with('\r')) line = trimmed(line.substr(0, line.size() - 1));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}: line {}", path, number);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      fail(ErrorCode::corrupt_file, "{}: {} has no \"=\", expected name = value", where,
           quoted(line));
    }
    const std::string_view name = trimmed(line.substr(0, equals));
    if (find_given(settings, name) != nullptr) {
      fail(ErrorCode::corrupt_file, "{}: {} is given a second time, expected once", where,
           quoted(name));
    }
    settings.push_back(given_setting(name, io::json_text(trimmed(line.substr(equals + 1))), where,
                                     ErrorCode::corrupt_file));
  }
  return settings;
}

void add_lower(GivenSettings& settings, GivenSettings lower) {
  const bool has_period = std::ranges::any_of(
      settings, [](const GivenSetting& item) { return is_of_period(item.field->name); });
  for (GivenSetting& item : lower) {
    const bool hidden = has_period && is_of_period(item.field->name);
    if (!hidden && find_given(settings, item.field->name) == nullptr) {
      settings.push_back(std::move(item));
    }
  }
}

BacktestSpec read_spec(const GivenSettings& settings, BacktestSpec spec) {
  for (const GivenSetting& given : settings) {
    const Json value = checked(given);
    try {
      given.field->set(spec, value);
    } catch (const Error& error) {
      throw Error(given.code, given.origin + ": " + error.what());
    }
  }
  check_together(settings, spec);
  return spec;
}

Json write_spec(const BacktestSpec& spec) {
  Json settings;
  settings.kind = Json::Kind::object;
  for (const SpecField& field : spec_fields()) {
    settings.object.push_back({std::string(field.name), field.get(spec)});
  }
  return settings;
}

}  // namespace toto::backtest
