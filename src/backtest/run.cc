#include "backtest/run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "io/json.h"

namespace toto::backtest {
namespace {

// The bound on the clock of a file: shifted only if both sides say which zone they mean.
io::Ticks on_clock_of(const Bars& bars, io::Ticks time, const io::TimeStyle& style) {
  using Zone = io::TimeStyle::Zone;
  if (style.zone == Zone::none || bars.style.zone == Zone::none) return time;
  const auto offset = [](const io::TimeStyle& item) {
    return item.zone == Zone::offset ? item.offset_minutes * io::kMinute : 0;
  };
  return time - offset(style) + offset(bars.style);
}

struct TargetBars {
  std::size_t first = 0, count = 0;
};

TargetBars target_bars(const Bars& bars, const RunOptions& options) {
  if (!options.from && !options.to) {
    const auto windows = static_cast<std::size_t>(options.windows);
    const std::size_t count = std::min(windows, bars.size());
    return {bars.size() - count, count};
  }
  for (const auto* bound : {&options.from, &options.to}) {
    if (!bound->has_value() || (*bound)->style.steps == bars.style.steps) continue;
    fail(ErrorCode::corrupt_file,
         "{}: its times are {} but {} is {}; give the bound as the file does", bars.file,
         bars.style.steps ? "step numbers" : "dates", io::quoted((*bound)->text),
         bars.style.steps ? "a date" : "a step number");
  }
  const auto begin = bars.times.begin();
  const auto low =
      options.from ? std::lower_bound(begin, bars.times.end(),
                                      on_clock_of(bars, options.from->first, options.from->style))
                   : begin;
  const auto high = options.to
                        ? std::upper_bound(begin, bars.times.end(),
                                           on_clock_of(bars, options.to->last, options.to->style))
                        : bars.times.end();
  if (low >= high) return {};
  return {static_cast<std::size_t>(low - begin), static_cast<std::size_t>(high - low)};
}

Rules rules_of(const RunOptions& options, Asset asset, double year) {
  Rules rules;
  rules.asset = asset;
  rules.lag = options.lag;
  rules.ci_multiplier = options.ci_multiplier;
  rules.tune_offsets = options.tune_offsets;
  const double usual_fee = asset == Asset::stock ? 5 : 15;
  rules.costs = {.fee = options.fee_bps.value_or(usual_fee) * kBasisPoint,
                 .slippage = options.slippage_bps * kBasisPoint,
                 .borrow = options.borrow_apr / year,
                 .fill_at_close = options.fill_at_close};
  return rules;
}

// Target bars there can be from the end, each with enough history at its decision.
std::size_t most_windows(const Bars& bars, const RunOptions& options) {
  std::size_t first = options.lag;
  while (first < bars.size() &&
         num_points(options.transform, first - options.lag, options.lag) < kMinPoints) {
    ++first;
  }
  return bars.size() - std::min(first, bars.size());
}

// Empty, or why this symbol cannot be run.
std::string skip_reason(const Bars& bars, const TargetBars& targets, const RunOptions& options) {
  if (targets.count == 0) {
    return fmt::format("{}: {} has no bar in the period asked for; it has {} to {}", bars.file,
                       bars.symbol, bars.time_text(0), bars.time_text(bars.size() - 1));
  }
  // More windows than bars: the first target, and its decision, lie before the file.
  const bool cut =
      !options.from && !options.to && targets.count < static_cast<std::size_t>(options.windows);
  const std::size_t points =
      cut || targets.first < options.lag
          ? 0
          : num_points(options.transform, targets.first - options.lag, options.lag);
  if (points >= kMinPoints) return {};
  const std::size_t most = most_windows(bars, options);
  return fmt::format(
      "{}: {} has too little history: {} points at its first decision, expected at least {}; it "
      "has {} bars, {}",
      bars.file, bars.symbol, points, kMinPoints, bars.size(),
      most == 0 ? "too few for any window" : fmt::format("enough for --windows {} at most", most));
}

}  // namespace

TimeBound parse_bound(std::string_view text) {
  TimeBound bound{.text = std::string(text)};
  io::TimeColumn column;
  const std::string complaint = column.read(text, bound.first);
  if (!complaint.empty()) fail(ErrorCode::invalid_argument, "{}", complaint);
  bound.style = column.style();
  bound.last = bound.first;
  if (bound.style.month_only) {
    const std::int64_t month = io::month_number(io::civil_date(bound.first));
    bound.last = io::midnight(io::first_of_month(month + 1)) - 1;
  } else if (!bound.style.has_clock && !bound.style.steps) {
    bound.last = bound.first + io::kDay - 1;
  }
  return bound;
}

std::string fill_warning(const RunOptions& options) {
  if (!options.fill_at_close || options.lag > 1) return {};
  return "with --fill close and a decision lag of 1 every market fill happens at the very close "
         "the "
         "decision was made from, which nobody can know and still trade at; --decision-lag 2 or "
         "--fill open is what can be done";
}

std::vector<std::string> notes_on(std::span<const Bars> bars, const RunOptions& options) {
  std::vector<std::string> notes;
  for (const Bars& symbol : bars) {
    const Asset asset = options.asset.value_or(detect_asset(symbol));
    for (const auto& found : {calendar_notes(symbol, options.asset, options.bars_per_year),
                              data_notes(symbol, asset)}) {
      notes.insert(notes.end(), found.begin(), found.end());
    }
  }
  return notes;
}

RunPlan plan_run(std::span<const Bars> bars, const RunOptions& options) {
  RunPlan plan;
  for (const Bars& symbol : bars) {
    check_changes(symbol, options.transform, options.return_scale, options.lag);
    const TargetBars targets = target_bars(symbol, options);
    std::string reason = skip_reason(symbol, targets, options);
    if (!reason.empty()) {
      plan.skipped.push_back({symbol.symbol, std::move(reason)});
      continue;
    }
    const Asset asset = options.asset.value_or(detect_asset(symbol));
    const double year = options.bars_per_year.value_or(bars_per_year(symbol, asset));
    plan.symbols.push_back({.bars = &symbol,
                            .bars_per_year = year,
                            .first = targets.first,
                            .count = targets.count,
                            .rules = rules_of(options, asset, year)});
  }
  return plan;
}

const StrategyResult* SymbolResult::find(Strategy strategy) const {
  const auto found =
      std::find_if(strategies.begin(), strategies.end(),
                   [&](const StrategyResult& result) { return result.strategy == strategy; });
  return found == strategies.end() ? nullptr : &*found;
}

StrategyResult run_strategy(Strategy strategy, const SymbolPlan& plan,
                            std::span<const BarForecast> forecasts, const Rules& rules) {
  const auto orders = decide(strategy, *plan.bars, plan.first, forecasts, rules);
  StrategyResult result{
      .strategy = strategy,
      .simulation = simulate(strategy, *plan.bars, plan.first, orders, rules.costs)};
  result.metrics = trading_metrics(result.simulation, plan.bars_per_year);
  return result;
}

std::vector<std::vector<BarForecast>> forecast_all(std::span<const SymbolPlan> plans,
                                                   ForecastSource& source) {
  std::vector<ForecastRequest> requests;
  for (const SymbolPlan& plan : plans) {
    for (std::size_t k = 0; k < plan.count; ++k) {
      for (const Target target : kTargets) {
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
                                   std::span<const Strategy> strategies) {
  std::vector<SymbolResult> results;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const SymbolPlan& plan = plans[i];
    SymbolResult& result = results.emplace_back();
    result.plan = plan;
    result.forecasts = std::move(forecasts[i]);
    for (const Strategy strategy : strategies) {
      result.strategies.push_back(run_strategy(strategy, plan, result.forecasts, plan.rules));
    }
    for (const Target target : kTargets) {
      result.accuracy[static_cast<std::size_t>(target)] =
          forecast_accuracy(*plan.bars, target, plan.first, plan.rules.lag, result.forecasts);
    }
  }
  return results;
}

}  // namespace toto::backtest
