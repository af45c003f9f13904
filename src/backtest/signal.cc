#include "backtest/signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backtest/report_parts.h"
#include "tables/series_grid.h"

namespace toto::backtest {
namespace {

using tables::Target;

// Whether the orders of a bar depend on the outcome of earlier target bars.
bool needs_history(const Strategy& strategy, const Rules& rules) {
  return strategy.revise != nullptr || (rules.tune_offsets && strategy.tunable);
}

// The last target bar alone, where no strategy looks at earlier ones: 4 forecasts per symbol
// instead of 4 x windows.
SymbolPlan shortened(SymbolPlan plan, std::span<const Strategy* const> strategies) {
  const bool whole = std::ranges::any_of(
      strategies, [&](const Strategy* strategy) { return needs_history(*strategy, plan.rules); });
  if (whole) return plan;
  plan.first += plan.count - 1;
  plan.count = 1;
  return plan;
}

SymbolSignal signal_of(const SymbolPlan& plan, std::span<const BarForecast> forecasts,
                       std::span<const Strategy* const> strategies, ForecastSource& source) {
  const tables::Bars& bars = *plan.bars;
  const std::size_t target = plan.first + plan.count - 1, last = target - plan.rules.lag;
  SymbolSignal signal{.symbol = bars.symbol,
                      .asset = plan.rules.asset,
                      .last_time = bars.time_text(last),
                      .target_time = bars.time_text(target),
                      .last_price = bars.close[last],
                      .forecast = forecasts.back(),
                      .probability_up = source.probability_up({&bars, last, Target::close}),
                      .fill_at_close = plan.rules.costs.fill_at_close};
  const Outlook outlook{bars, plan.first, forecasts, plan.rules};
  for (const Strategy* strategy : strategies) {
    const BarOrders orders = decide(*strategy, outlook).back();
    signal.strategies.push_back(
        {strategy, orders, reason_of(*strategy, outlook, plan.count - 1, orders)});
  }
  return signal;
}

}  // namespace

std::vector<tables::Bars> with_coming_bars(std::span<const tables::Bars> bars, std::size_t lag) {
  std::vector<tables::Bars> extended(bars.begin(), bars.end());
  for (tables::Bars& symbol : extended) {
    if (symbol.size() == 0) continue;
    const tables::Frequency frequency =
        tables::infer_grid(symbol.times, symbol.style.steps).frequency;
    const bool unknown = frequency.unit == tables::Frequency::Unit::unknown;
    const tables::Ticks last = symbol.times.back();
    const double close = symbol.close.back();
    for (std::size_t step = 1; step <= lag; ++step) {
      const auto steps = static_cast<std::int64_t>(step);
      symbol.times.push_back(unknown ? last + steps : tables::advance(frequency, last, steps));
      widen(symbol.style, symbol.times.back());
      symbol.lines.push_back(symbol.lines.back() + 1);
      for (auto* prices : {&symbol.open, &symbol.high, &symbol.low, &symbol.close}) {
        prices->push_back(close);
      }
      if (!symbol.volume.empty()) symbol.volume.push_back(kUndefined);
    }
  }
  return extended;
}

PreparedBacktest prepare_signal(BacktestSpec spec, tables::BarFiles data) {
  PreparedBacktest prepared;
  prepared.spec = std::move(spec);
  prepared.spec.to.reset();  // the last target bar is the coming one
  prepared.files = data_files(data.bars);
  prepared.bars = with_coming_bars(data.bars, prepared.spec.lag);
  prepared.plan = plan_run(prepared.bars, prepared.spec);
  for (SkippedSymbol& item : prepared.plan.skipped) {
    item.reason += fmt::format(" (with the coming {})", bars_in_words(prepared.spec.lag));
  }
  prepared.notes = std::move(data.notes);
  for (const auto& notes : {prepared.plan.notes, notes_on(data.bars, prepared.spec)}) {
    prepared.notes.insert(prepared.notes.end(), notes.begin(), notes.end());
  }
  return prepared;
}

std::vector<SymbolSignal> signals_of(std::span<const SymbolPlan> plans,
                                     std::span<const Strategy* const> strategies,
                                     ForecastSource& source) {
  std::vector<SymbolPlan> needed;
  for (const SymbolPlan& plan : plans) needed.push_back(shortened(plan, strategies));
  const auto forecasts = forecast_all(needed, source);
  std::vector<SymbolSignal> signals;
  signals.reserve(needed.size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    signals.push_back(signal_of(needed[i], forecasts[i], strategies, source));
  }
  return signals;
}

}  // namespace toto::backtest
