// The table of a backtest's settings: one row for each field of BacktestSpec.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "backtest/backtest_spec.h"
#include "base/error.h"
#include "base/threads.h"

namespace toto::backtest {
namespace {

using io::Json;
using io::json_names;
using io::json_number;
using io::json_text;
using io::json_toggle;
using tables::Asset;
using Spec = BacktestSpec;
using Type = SpecField::Type;
using Get = Json (*)(const Spec& spec);

// -------------------------------------------------------------------------- values and their names

std::string_view name_of(const std::string& text) { return text; }
std::string_view parse_any(std::string_view text) { return text; }

std::string_view name_of(const std::optional<Asset>& asset) {
  return asset ? tables::name_of(*asset) : "auto";
}
std::optional<Asset> parse_asset(std::string_view name) {
  if (name == "auto") return {};
  return name == "stock" ? Asset::stock : Asset::crypto;
}

Isa parse_available_isa(std::string_view name) {
  const Isa isa = parse_isa(name);
  if (isa_available(isa)) return isa;
  fail(ErrorCode::invalid_argument, "this CPU does not have {}; its best is {}: use auto", name,
       toto::name_of(best_isa()));
}

// ---------------------------------------------------------------------------------- kinds of rows

// A member that is a number. Null is allowed if the member is optional or `get` is given.
template <auto Member>
SpecField number(std::string_view name, double low, double high, std::string_view placeholder,
                 std::string_view help, Get get = nullptr) {
  using Number = std::decay_t<decltype(std::declval<Spec>().*Member)>;
  constexpr bool kOptional = !std::is_arithmetic_v<Number>;
  constexpr bool kWhole = std::is_integral_v<Number>;
  const Get usual = [](const Spec& spec) {
    if constexpr (kOptional) {
      return spec.*Member ? json_number(*(spec.*Member)) : Json();
    } else {
      return json_number(static_cast<double>(spec.*Member));
    }
  };
  return {.name = name,
          .type = kWhole ? Type::whole : Type::decimal,
          .nullable = kOptional || get != nullptr,
          .low = low,
          .high = high,
          .placeholder = placeholder,
          .help = help,
          .set =
              [](Spec& spec, const Json& value) {
                if constexpr (kWhole) {
                  spec.*Member = static_cast<Number>(value.integer);
                } else {
                  spec.*Member = value.real;
                }
              },
          .get = get != nullptr ? get : usual};
}

template <auto Member>
SpecField toggle(std::string_view name, std::string_view help) {
  return {.name = name,
          .type = Type::toggle,
          .help = help,
          .set = [](Spec& spec, const Json& value) { spec.*Member = value.boolean; },
          .get = [](const Spec& spec) { return json_toggle(spec.*Member); }};
}

template <auto Member>
SpecField bound(std::string_view name, std::string_view help) {
  return {
      .name = name,
      .type = Type::time,
      .nullable = true,
      .placeholder = "TIME",
      .help = help,
      .set = [](Spec& spec, const Json& value) { spec.*Member = parse_bound(value.string); },
      .get =
          [](const Spec& spec) { return spec.*Member ? json_text((spec.*Member)->text) : Json(); }};
}

// A member whose values have names: `Parse` reads them, name_of writes them.
template <auto Member, auto Parse>
SpecField named(std::string_view name, std::string_view placeholder = {},
                std::string_view help = {}, const std::vector<std::string_view>& choices = {}) {
  return {.name = name,
          .type = Type::text,
          .placeholder = placeholder,
          .help = help,
          .choices = choices,
          .set = [](Spec& spec, const Json& value) { spec.*Member = Parse(value.string); },
          .get = [](const Spec& spec) { return json_text(name_of(spec.*Member)); }};
}

SpecField of_engine(SpecField field) {
  field.of_engine = true;
  return field;
}

// ------------------------------------------------------------------------------------------- rows

// The benchmark and these, each once, in the order of the table.
void set_strategies(Spec& spec, const Json& value) {
  spec.strategies = {&benchmark_strategy()};
  for (const Json& name : value.array) spec.strategies.push_back(&parse_strategy(name.string));
  std::ranges::sort(spec.strategies);
  const auto [rest, end] = std::ranges::unique(spec.strategies);
  spec.strategies.erase(rest, end);
}

Json get_strategies(const Spec& spec) {
  Json names = json_names();
  for (const Strategy* item : spec.strategies) names.array.push_back(json_text(item->name));
  return names;
}

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : all_strategies()) names.push_back(strategy.name);
  return names;
}

void set_data(Spec& spec, const Json& value) {
  spec.data.clear();
  for (const Json& item : value.array) spec.data.push_back(item.string);
}

Json get_data(const Spec& spec) {
  Json names = json_names();
  for (const std::string& item : spec.data) names.array.push_back(json_text(item));
  return names;
}

std::vector<SpecField> make_fields() {
  constexpr double kMost = std::numeric_limits<int>::max();
  constexpr double kMaxCostBps = 5000;  // half of the price
  return {
      {.name = "data", .type = Type::names, .set = set_data, .get = get_data},
      number<&Spec::windows>(
          "windows", 1, 1'000'000, "N", "target bars, from the end",
          [](const Spec& s) { return s.from || s.to ? Json() : json_number(s.windows); }),
      bound<&Spec::from>("from", "first target bar, instead of --windows"),
      bound<&Spec::to>("to", "last target bar, inclusive"),
      number<&Spec::lag>("decision_lag", 1, kMaxLag, "D",
                         "bars from a decision to its target bar, 1 to 64"),
      number<&Spec::context>("context", 1, kMost, "N", "points of history used at most"),
      named<&Spec::transform, parse_transform>(
          "transform", "T", "series to forecast: pct, log or price", {"pct", "log", "price"}),
      number<&Spec::return_scale>("return_scale", 1e-3, 1e6, "X",
                                  "factor on changes before the network sees them, taken out of "
                                  "its answers again: 100 is percent"),
      {.name = "point",
       .type = Type::text,
       .nullable = true,
       .placeholder = "SPEC",
       .help = "the predicted price; with --samples trimmed_mean_10",
       .set = [](Spec& s, const Json& value) { s.point = parse_point(value.string); },
       .get = [](const Spec& s) { return json_text(toto::name_of(s.chosen_point())); }},
      number<&Spec::samples>(
          "samples", 1, kMaxSamples, "N", "take everything from N sampled paths (default: exact)",
          [](const Spec& s) { return s.samples > 0 ? json_number(s.samples) : Json(); }),
      named<&Spec::asset, parse_asset>("asset", "A",
                                       "stock, crypto or auto: crypto if a bar falls on a weekend",
                                       {"auto", "stock", "crypto"}),
      number<&Spec::bars_per_year>(
          "bars_per_year", 1, 1e8, "N",
          "basis of annual figures (default: 252, crypto 365, times the bars of a day)"),
      {.name = "strategies",
       .type = Type::names,
       .nullable = true,
       .placeholder = "A,B",
       .help = "strategies to run",
       .choices = strategy_names(),
       .set = set_strategies,
       .get = get_strategies},
      number<&Spec::ci_multiplier>("ci_multiplier", 0, 1e6, "X", "width of the band of ci-guard"),
      toggle<&Spec::tune_offsets>(
          "tune_offsets", "search offsets of the limit prices, on windows before each decision"),
      {.name = "fill",
       .type = Type::text,
       .placeholder = "F",
       .help = "open, or close: at the close before",
       .choices = {"open", "close"},
       .set = [](Spec& s, const Json& value) { s.fill_at_close = value.string == "close"; },
       .get = [](const Spec& s) { return json_text(s.fill_at_close ? "close" : "open"); }},
      number<&Spec::fee_bps>("fee_bps", 0, kMaxCostBps, "X",
                             "fee of each side, in basis points (default 5, crypto 15)"),
      number<&Spec::slippage_bps>("slippage_bps", 0, kMaxCostBps, "X",
                                  "slippage of each market fill, in basis points"),
      number<&Spec::borrow_apr>("borrow_apr", 0, 100, "X",
                                "yearly cost of a short position, 0.03 is 3 %"),
      toggle<&Spec::prove_no_lookahead>(
          "prove_no_lookahead", "make every decision again with all later rows replaced by noise"),
      toggle<&Spec::lag_test>("lag_test", "skip the run with the other decision lag"),
      of_engine(named<&Spec::model, parse_any>("model")),
      of_engine(named<&Spec::mode, parse_mode>("mode")),
      of_engine(named<&Spec::dtype, parse_dtype>("dtype")),
      of_engine(named<&Spec::isa, parse_available_isa>("isa")),
      of_engine(number<&Spec::threads>(
          "threads", 1, 4.0 * usable_cores(), {}, {},
          [](const Spec& s) { return s.threads > 0 ? json_number(s.threads) : Json(); })),
      // As text: a seed may be beyond what JSON readers keep exactly.
      of_engine(
          number<&Spec::seed>("seed", 0, 0x1p64, {}, {},
                              [](const Spec& s) { return json_text(fmt::format("{}", s.seed)); })),
      of_engine(toggle<&Spec::no_kv_cache>("no_kv_cache", {})),
  };
}

}  // namespace

std::span<const SpecField> spec_fields() {
  static const std::vector<SpecField> fields = make_fields();
  return fields;
}

std::string help_of(const SpecField& field) {
  std::string help(field.help);
  if (field.type == Type::toggle) return help;
  if (field.type == Type::names) {
    return fmt::format("{}: {} (default all)", help, fmt::join(field.choices, ", "));
  }
  const Json value = field.get(BacktestSpec());
  if (value.kind == Json::Kind::null) return help;
  return fmt::format("{} (default {})", help,
                     value.kind == Json::Kind::string ? value.string : io::described(value));
}

}  // namespace toto::backtest
