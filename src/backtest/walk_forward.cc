#include "backtest/walk_forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

// The bound in the clock of a file; shifted only if both have a zone.
tables::Ticks on_clock_of(const tables::Bars& bars, tables::Ticks time,
                          const tables::TimeStyle& style) {
  using Zone = tables::TimeStyle::Zone;
  if (style.zone == Zone::none || bars.style.zone == Zone::none) return time;
  const auto offset = [](const tables::TimeStyle& item) {
    return item.zone == Zone::offset ? item.offset_minutes * tables::kMinute : 0;
  };
  return time - offset(style) + offset(bars.style);
}

struct TargetBars {
  std::size_t first = 0, count = 0;
};

// The most target bars, counted from the end, that have `points` of history at their decision.
std::size_t most_windows(const tables::Bars& bars, const BacktestSpec& spec, std::size_t points) {
  std::size_t first = spec.lag;
  while (first < bars.size() && num_points(spec.transform, first - spec.lag, spec.lag) < points) {
    ++first;
  }
  return bars.size() - std::min(first, bars.size());
}

// By default fewer than kDefaultWindows where the symbol is short, but at least 1.
std::size_t num_windows(const tables::Bars& bars, const BacktestSpec& spec) {
  if (spec.windows) return static_cast<std::size_t>(*spec.windows);
  return std::clamp<std::size_t>(most_windows(bars, spec, kEnoughPoints), 1, kDefaultWindows);
}

bool has_period(const BacktestSpec& spec) { return spec.from || spec.to; }

TargetBars target_bars(const tables::Bars& bars, const BacktestSpec& spec) {
  if (!has_period(spec)) {
    const std::size_t count = std::min(num_windows(bars, spec), bars.size());
    return {bars.size() - count, count};
  }
  for (const auto* bound : {&spec.from, &spec.to}) {
    if (!bound->has_value() || (*bound)->style.steps == bars.style.steps) continue;
    fail(ErrorCode::corrupt_file,
         "{}: its times are {} but {} is {}; give the bound as the file does", bars.file,
         bars.style.steps ? "step numbers" : "dates", quoted((*bound)->text),
         bars.style.steps ? "a date" : "a step number");
  }
  const auto begin = bars.times.begin();
  const auto low = spec.from
                       ? std::lower_bound(begin, bars.times.end(),
                                          on_clock_of(bars, spec.from->first, spec.from->style))
                       : begin;
  const auto high = spec.to ? std::upper_bound(begin, bars.times.end(),
                                               on_clock_of(bars, spec.to->last, spec.to->style))
                            : bars.times.end();
  if (low >= high) return {};
  return {static_cast<std::size_t>(low - begin), static_cast<std::size_t>(high - low)};
}

Rules rules_of(const BacktestSpec& spec, tables::Asset asset, double year) {
  Rules rules;
  rules.asset = asset;
  rules.lag = spec.lag;
  rules.ci_multiplier = spec.ci_multiplier;
  rules.tune_offsets = spec.tune_offsets;
  const UsualCosts usual = usual_costs(asset);
  rules.costs = {.fee = spec.fee_bps.value_or(usual.fee_bps) * kBasisPoint,
                 .slippage = spec.slippage_bps.value_or(usual.slippage_bps) * kBasisPoint,
                 .borrow = spec.borrow_apr / year,
                 .fill_at_close = spec.fill_at_close};
  return rules;
}

std::size_t points_at_first_decision(std::size_t first, const BacktestSpec& spec) {
  return first < spec.lag ? 0 : num_points(spec.transform, first - spec.lag, spec.lag);
}

// Empty, or why this symbol cannot be run.
std::string skip_reason(const tables::Bars& bars, const TargetBars& targets,
                        const BacktestSpec& spec) {
  if (targets.count == 0) {
    return fmt::format("{}: {} has no bar in the period asked for; it has {} to {}", bars.file,
                       bars.symbol, bars.time_text(0), bars.time_text(bars.size() - 1));
  }
  // More windows than bars: the first target bar would be before the file.
  const bool cut = !has_period(spec) && targets.count < num_windows(bars, spec);
  const std::size_t points = cut ? 0 : points_at_first_decision(targets.first, spec);
  if (points >= kMinPoints) return {};
  const std::size_t most = most_windows(bars, spec, kMinPoints);
  return fmt::format(
      "{}: {} has too little history: {} points at its first decision, expected at least {}; it "
      "has {} bars, {}",
      bars.file, bars.symbol, points, kMinPoints, bars.size(),
      most == 0 ? "too few for any window" : fmt::format("enough for --windows {} at most", most));
}

}  // namespace

std::string fill_warning(const BacktestSpec& spec) {
  if (!spec.fill_at_close || spec.lag > 1) return {};
  return "with --fill close and a decision lag of 1 every market fill happens at the close that "
         "the "
         "decision is based on, which is over by then; use --decision-lag 2 or --fill open";
}

std::vector<std::string> notes_on(std::span<const tables::Bars> bars, const BacktestSpec& spec) {
  std::vector<std::string> notes;
  for (const tables::Bars& symbol : bars) {
    const tables::Asset asset = spec.asset.value_or(tables::detect_asset(symbol).asset);
    for (const auto& found : {tables::calendar_notes(symbol, spec.asset, spec.bars_per_year),
                              tables::data_notes(symbol, asset)}) {
      notes.insert(notes.end(), found.begin(), found.end());
    }
  }
  return notes;
}

RunPlan plan_run(std::span<const tables::Bars> bars, const BacktestSpec& spec) {
  RunPlan plan;
  for (const tables::Bars& symbol : bars) {
    check_changes(symbol, spec.transform, spec.lag);
    const TargetBars targets = target_bars(symbol, spec);
    std::string reason = skip_reason(symbol, targets, spec);
    if (!reason.empty()) {
      plan.skipped.push_back({symbol.symbol, std::move(reason)});
      continue;
    }
    const tables::DetectedAsset detected = tables::detect_asset(symbol);
    const tables::Asset asset = spec.asset.value_or(detected.asset);
    const double year = spec.bars_per_year.value_or(tables::bars_per_year(symbol, asset));
    if (!has_period(spec) && !spec.windows && targets.count < kDefaultWindows) {
      plan.notes.push_back(fmt::format(
          "{}: {} has {} bars: {} target bars instead of {}, so that {} points of history are "
          "left; --windows N overrides it",
          symbol.file, symbol.symbol, symbol.size(), targets.count, kDefaultWindows,
          points_at_first_decision(targets.first, spec)));
    }
    plan.symbols.push_back({.bars = &symbol,
                            .asset_reason = spec.asset ? "as given" : detected.reason,
                            .bars_per_year = year,
                            .first = targets.first,
                            .count = targets.count,
                            .rules = rules_of(spec, asset, year)});
  }
  return plan;
}

RunPlan with_lag(const RunPlan& plan, const BacktestSpec& spec) {
  RunPlan other;
  for (SymbolPlan symbol : plan.symbols) {
    check_changes(*symbol.bars, spec.transform, spec.lag);
    symbol.rules.lag = spec.lag;
    if (points_at_first_decision(symbol.first, spec) >= kMinPoints) other.symbols.push_back(symbol);
  }
  return other;
}

const StrategyResult* SymbolResult::find(const Strategy& strategy) const {
  const auto found =
      std::find_if(strategies.begin(), strategies.end(),
                   [&](const StrategyResult& result) { return result.strategy == &strategy; });
  return found == strategies.end() ? nullptr : &*found;
}

StrategyResult run_strategy(const Strategy& strategy, const SymbolPlan& plan,
                            std::span<const BarForecast> forecasts, const Rules& rules,
                            std::span<const double> benchmark) {
  const auto orders = decide(strategy, {*plan.bars, plan.first, forecasts, rules});
  StrategyResult result{
      .strategy = &strategy,
      .simulation = simulate(strategy, *plan.bars, plan.first, orders, rules.costs)};
  result.metrics = trading_metrics(result.simulation, plan.bars_per_year, benchmark);
  return result;
}

std::vector<std::vector<BarForecast>> forecast_all(std::span<const SymbolPlan> plans,
                                                   ForecastSource& source) {
  std::vector<TargetRequest> requests;
  for (const SymbolPlan& plan : plans) {
    for (std::size_t k = 0; k < plan.count; ++k) {
      for (const tables::Target target : tables::kTargets) {
        requests.push_back({plan.bars, plan.first + k - plan.rules.lag, target});
      }
    }
  }
  std::vector<TargetForecast> results(requests.size());
  source.forecast(requests, results);
  std::vector<std::vector<BarForecast>> all;
  auto next = results.begin();
  for (const SymbolPlan& plan : plans) {
    std::vector<BarForecast>& forecasts = all.emplace_back(plan.count);
    for (BarForecast& forecast : forecasts) {
      std::copy_n(next, forecast.size(), forecast.begin());
      next += static_cast<std::ptrdiff_t>(forecast.size());
    }
  }
  return all;
}

std::vector<SymbolResult> evaluate(std::span<const SymbolPlan> plans,
                                   std::vector<std::vector<BarForecast>> forecasts,
                                   std::span<const Strategy* const> strategies) {
  std::vector<SymbolResult> results;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const SymbolPlan& plan = plans[i];
    SymbolResult& result = results.emplace_back();
    result.plan = plan;
    result.forecasts = std::move(forecasts[i]);
    std::vector<double> benchmark;
    for (const Strategy* strategy : strategies) {
      result.strategies.push_back(
          run_strategy(*strategy, plan, result.forecasts, plan.rules, benchmark));
      if (strategy == &benchmark_strategy()) {
        benchmark = result.strategies.back().simulation.returns;
      }
    }
    result.incoherent_bars = static_cast<std::size_t>(std::ranges::count_if(
        result.forecasts, [](const BarForecast& forecast) { return !is_coherent(forecast); }));
    for (const tables::Target target : tables::kTargets) {
      result.accuracy[static_cast<std::size_t>(target)] =
          forecast_accuracy(*plan.bars, target, plan.first, plan.rules.lag, result.forecasts);
    }
  }
  return results;
}

}  // namespace toto::backtest
