#include "backtest/backtest_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assignment.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

using io::Json;
using io::json_text;

const SpecField* find_field(std::string_view name) {
  const auto found = std::ranges::find(spec_fields(), name, &SpecField::name);
  return found == spec_fields().end() ? nullptr : &*found;
}

// --------------------------------------------------------------------------------------- reading

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
  for (const NumberedLine& line : lines_of(text)) {
    if (is_blank_or_comment(line.text)) continue;
    const std::string where = fmt::format("{}: line {}", path, line.number);
    const auto found = parse_assignment(line.text);
    if (!found) {
      fail(ErrorCode::corrupt_file, "{}: {} has no \"=\", expected name = value", where,
           quoted(trimmed(line.text)));
    }
    if (find_given(settings, found->name) != nullptr) {
      fail(ErrorCode::corrupt_file, "{}: {} is given a second time, expected once", where,
           quoted(found->name));
    }
    settings.push_back(
        given_setting(found->name, json_text(found->value), where, ErrorCode::corrupt_file));
  }
  return settings;
}

bool is_of_signal(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> kOfBacktest = {"to", "prove_no_lookahead", "lag_test",
                                                           "benchmark"};
  return std::ranges::find(kOfBacktest, name) == kOfBacktest.end();
}

void require_signal_settings(const GivenSettings& settings) {
  for (const GivenSetting& given : settings) {
    if (is_of_signal(given.field->name)) continue;
    fail(given.code, "{} is a setting of a backtest; a signal is about the coming bar and has none",
         given.origin);
  }
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
    settings::read(*given.field, {.value = given.value, .origin = given.origin, .code = given.code},
                   spec);
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
