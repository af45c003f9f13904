// The table of a backtest's settings: one row for each field of BacktestSpec.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "backtest/backtest_spec.h"
#include "base/error.h"
#include "base/threads.h"
#include "settings/engine_settings.h"

namespace toto::backtest {
namespace {

using io::Json;
using io::json_names;
using io::json_number;
using io::json_text;
using settings::kFile;
using settings::kFlag;
using settings::kPython;
using settings::Type;
using tables::Asset;
using Spec = BacktestSpec;
using SpecRows = settings::Rows<BacktestSpec>;

constexpr unsigned kRun = kFlag | kPython;

template <auto Member>
SpecField bound(std::string_view name, std::string_view help) {
  return {{.name = name,
           .type = Type::time,
           .doors = kRun,
           .nullable = true,
           .placeholder = "TIME",
           .help = help},
          [](Spec& spec, const Json& value) { spec.*Member = parse_bound(value.string); },
          [](const Spec& spec) { return spec.*Member ? json_text((spec.*Member)->text) : Json(); }};
}

void set_asset(Spec& spec, const Json& value) {
  spec.asset = {};
  if (value.string == "stock") spec.asset = Asset::stock;
  if (value.string == "crypto") spec.asset = Asset::crypto;
  if (value.string == "fx") spec.asset = Asset::fx;
}

Json get_asset(const Spec& spec) {
  return json_text(spec.asset ? tables::name_of(*spec.asset) : "auto");
}

SpecField of_engine(SpecField field) {
  field.of_engine = true;
  return field;
}

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

std::vector<SpecField> run_rows() {
  constexpr double kMost = std::numeric_limits<int>::max();
  constexpr double kMaxCostBps = 5000;  // half of the price
  std::vector<SpecField> rows;
  rows.push_back({{.name = "data", .type = Type::names}, set_data, get_data});
  rows.push_back(SpecRows::number<&Spec::windows>("windows", 1, 1'000'000)
                     .words("N", "target bars, from the end")
                     .at(kRun)
                     .or_else("250, fewer of a short symbol"));
  rows.push_back(bound<&Spec::from>("from", "first target bar, instead of --windows"));
  rows.push_back(bound<&Spec::to>("to", "last target bar, inclusive"));
  rows.push_back(SpecRows::number<&Spec::lag>("decision_lag", 1, kMaxLag)
                     .words("D", "bars from a decision to its target bar, 1 to 64")
                     .at(kRun));
  rows.push_back(SpecRows::number<&Spec::context>("context", 1, kMost)
                     .words("N", "points of history used at most")
                     .at(kRun));
  rows.push_back(
      SpecRows::named<&Spec::transform, parse_transform>("transform", {"pct", "log", "price"})
          .words("T", "series to forecast: pct, log or price")
          .at(kRun));
  rows.push_back(
      {{.name = "scale",
        .type = Type::factor,
        .doors = kRun,
        .placeholder = "F",
        .help = "multiply the series by F for the model and divide the answers by it; "
                "auto: a power of two for series that vary too little for the model"},
       [](Spec& s, const Json& value) { s.scale = value.is_number() ? value.real : 0; },
       [](const Spec& s) { return s.scale == 0 ? json_text("auto") : json_number(s.scale); }});
  rows.push_back({{.name = "point",
                   .type = Type::text,
                   .doors = kRun,
                   .nullable = true,
                   .placeholder = "SPEC",
                   .help = "the predicted price; with --samples trimmed_mean_10"},
                  [](Spec& s, const Json& value) { s.point = parse_point(value.string); },
                  [](const Spec& s) { return json_text(toto::name_of(s.chosen_point())); }});
  rows.push_back(SpecRows::number<&Spec::samples>(
                     "samples", 1, kMaxSamples,
                     [](const Spec& s) { return s.samples > 0 ? json_number(s.samples) : Json(); })
                     .words("N", "take everything from N sampled paths")
                     .at(kRun)
                     .or_else("exact"));
  rows.push_back(
      {{.name = "asset",
        .type = Type::text,
        .doors = kRun,
        .placeholder = "A",
        .help = "stock, crypto, fx or auto: fx if the symbol is a currency pair, crypto if a bar "
                "falls on a weekend",
        .choices = {"auto", "stock", "crypto", "fx"}},
       set_asset,
       get_asset});
  rows.push_back(SpecRows::number<&Spec::bars_per_year>("bars_per_year", 1, 1e8)
                     .words("N", "basis of annual figures")
                     .at(kRun)
                     .or_else("252, crypto 365, fx 260, times the bars of a day"));
  rows.push_back({{.name = "strategies",
                   .type = Type::names,
                   .doors = kRun,
                   .nullable = true,
                   .placeholder = "A,B",
                   .help = "strategies to run",
                   .choices = strategy_names(),
                   .otherwise = "all"},
                  set_strategies,
                  get_strategies});
  rows.push_back(SpecRows::number<&Spec::ci_multiplier>("ci_multiplier", 0, 1e6)
                     .words("X", "width of the band of ci-guard")
                     .at(kRun | kFile)
                     .from({"TOTO_CI_GUARD_MULTIPLIER"}));
  rows.push_back(
      SpecRows::toggle<&Spec::tune_offsets>("tune_offsets")
          .words({}, "search offsets of the limit prices, on windows before each decision")
          .at(kRun));
  rows.push_back({{.name = "fill",
                   .type = Type::text,
                   .doors = kRun,
                   .placeholder = "F",
                   .help = "open, or close: at the close before",
                   .choices = {"open", "close"}},
                  [](Spec& s, const Json& value) { s.fill_at_close = value.string == "close"; },
                  [](const Spec& s) { return json_text(s.fill_at_close ? "close" : "open"); }});
  rows.push_back(SpecRows::number<&Spec::fee_bps>("fee_bps", 0, kMaxCostBps)
                     .words("X", "fee of each side, in basis points")
                     .at(kRun)
                     .or_else("5, crypto 15, fx 0.5"));
  rows.push_back(SpecRows::number<&Spec::slippage_bps>("slippage_bps", 0, kMaxCostBps)
                     .words("X", "slippage of each market fill, in basis points")
                     .at(kRun)
                     .or_else("5, fx 0.5"));
  rows.push_back(SpecRows::number<&Spec::borrow_apr>("borrow_apr", 0, 100)
                     .words("X", "yearly cost of a short position, 0.03 is 3 %")
                     .at(kRun));
  rows.push_back(SpecRows::toggle<&Spec::prove_no_lookahead>("prove_no_lookahead")
                     .words({}, "make every decision again with all later rows replaced by noise")
                     .at(kRun));
  rows.push_back(SpecRows::toggle<&Spec::lag_test>("lag_test")
                     .words({}, "skip the run with the other decision lag")
                     .at(kRun));
  rows.push_back(
      {{.name = "benchmark",
        .type = Type::text,
        .doors = kRun,
        .nullable = true,
        .placeholder = "FILE",
        .help = "bars to compare with in the report, for example of an index",
        .otherwise = "none"},
       [](Spec& s, const Json& value) { s.benchmark = value.string; },
       [](const Spec& s) { return s.benchmark.empty() ? Json() : json_text(s.benchmark); }});
  rows.push_back(of_engine(SpecRows::text<&Spec::model>("model")));
  rows.push_back(of_engine(SpecRows::named<&Spec::mode, parse_mode>("mode")));
  rows.push_back(of_engine(SpecRows::named<&Spec::dtype, parse_dtype>("dtype")));
  rows.push_back(of_engine(SpecRows::named<&Spec::isa, settings::parse_available_isa>("isa")));
  rows.push_back(of_engine(SpecRows::number<&Spec::threads>(
      "threads", 1, 4.0 * usable_cores(),
      [](const Spec& s) { return s.threads > 0 ? json_number(s.threads) : Json(); })));
  // As text: a seed may be beyond what JSON readers keep exactly.
  rows.push_back(of_engine(SpecRows::number<&Spec::seed>("seed", 0, 0x1p64, [](const Spec& s) {
                             return json_text(fmt::format("{}", s.seed));
                           }).at(kPython)));
  rows.push_back(of_engine(SpecRows::toggle<&Spec::no_kv_cache>("no_kv_cache")));
  return settings::table(std::move(rows));
}

}  // namespace

UsualCosts usual_costs(tables::Asset asset) noexcept {
  constexpr std::array<UsualCosts, 3> kUsual = {{{5, 5}, {15, 5}, {0.5, 0.5}}};
  return kUsual[static_cast<std::size_t>(asset)];
}

std::span<const SpecField> spec_fields() {
  static const std::vector<SpecField> fields = run_rows();
  return fields;
}

}  // namespace toto::backtest
