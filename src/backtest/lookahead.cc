#include "backtest/lookahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/elementary.h"
#include "base/random.h"

namespace toto::backtest {
namespace {

constexpr std::size_t kGroup = 64;  // poisoned copies in memory at a time
constexpr std::size_t kSampledSymbols = 8;
constexpr std::size_t kSampledDecisions = 4;  // of each of them

struct Decision {
  std::size_t symbol;
  std::size_t window;
};

// `count` of `size` positions, first and last among them.
std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  std::vector<std::size_t> positions;
  if (count >= size || count < 2) {
    for (std::size_t i = 0; i < size; ++i) positions.push_back(i);
    return positions;
  }
  for (std::size_t i = 0; i < count; ++i) positions.push_back(i * (size - 1) / (count - 1));
  return positions;
}

std::vector<Decision> choose(std::span<const SymbolResult> results, Checked which) {
  const bool all = which == Checked::all;
  std::vector<Decision> decisions;
  for (const std::size_t symbol : spread(results.size(), all ? results.size() : kSampledSymbols)) {
    const std::size_t count = results[symbol].plan.count;
    for (const std::size_t window : spread(count, all ? count : kSampledDecisions)) {
      decisions.push_back({symbol, window});
    }
  }
  return decisions;
}

// Replaces prices by random ones between a tenth and ten times the first close. Times are kept: the
// calendar is known in advance.
tables::Bars poisoned(const tables::Bars& bars, std::size_t decision) {
  tables::Bars copy = bars;
  for (std::size_t bar = decision + 1; bar < bars.size(); ++bar) {
    const RandomWords words =
        philox4x32({static_cast<std::uint32_t>(bar), static_cast<std::uint32_t>(decision), 0, 0},
                   {0x746f746f, 0x706f6973});
    const auto noise = [&](std::size_t i) {
      constexpr double kLogTen = 2.302585092994046;
      return bars.close[0] * elementary::exp(kLogTen * (words[i] * 0x1p-31 - 1));
    };
    copy.open[bar] = noise(0);
    copy.high[bar] = noise(1);
    copy.low[bar] = noise(2);
    copy.close[bar] = noise(3);
    if (!copy.volume.empty()) copy.volume[bar] = noise(0);
  }
  return copy;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same_bits(const BarOrders& a, const BarOrders& b) {
  bool same = a.num_legs == b.num_legs && same_bits(a.share, b.share);
  for (std::size_t i = 0; i < a.legs.size(); ++i) {
    same = same && a.legs[i].side == b.legs[i].side && a.legs[i].at_limit == b.legs[i].at_limit &&
           same_bits(a.legs[i].entry, b.legs[i].entry) &&
           same_bits(a.legs[i].take_profit, b.legs[i].take_profit);
  }
  return same;
}

bool same_bits(const TargetForecast& a, const TargetForecast& b) {
  bool same = same_bits(a.point, b.point);
  for (std::size_t i = 0; i < kNumLevels; ++i) {
    same = same && same_bits(a.quantiles[i], b.quantiles[i]);
  }
  return same;
}

bool same_bits(const BarForecast& a, const BarForecast& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](const auto& x, const auto& y) { return same_bits(x, y); });
}

BarForecast forecast_again(ForecastSource& source, const tables::Bars& bars, std::size_t bar) {
  std::vector<TargetRequest> requests;
  requests.reserve(tables::kTargets.size());
  for (const tables::Target target : tables::kTargets) requests.push_back({&bars, bar, target});
  std::vector<TargetForecast> again(requests.size());
  source.forecast(requests, again);
  BarForecast forecast;
  std::copy_n(again.begin(), forecast.size(), forecast.begin());
  return forecast;
}

// Empty, or what differs when the decision is made again on the poisoned bars.
std::string difference(const SymbolResult& result, std::size_t window, const tables::Bars& bars,
                       const BarForecast& again) {
  const BarForecast& original = result.forecasts[window];
  for (const tables::Target target : tables::kTargets) {
    if (!same_bits(forecast_of(original, target), forecast_of(again, target))) {
      return fmt::format("the forecast of its {}", name_of(target));
    }
  }
  const auto so_far = std::span(result.forecasts).first(window + 1);
  const SymbolPlan& plan = result.plan;
  for (const StrategyResult& strategy : result.strategies) {
    const auto before =
        decide(*strategy.strategy, {*plan.bars, plan.first, result.forecasts, plan.rules});
    const auto after = decide(*strategy.strategy, {bars, plan.first, so_far, plan.rules});
    if (!same_bits(before[window], after[window])) {
      return fmt::format("the orders of {}", strategy.strategy->name);
    }
  }
  return {};
}

}  // namespace

std::string LookaheadCheck::failure() const {
  if (!kept_forecast_differs) {
    return fmt::format("the no-lookahead proof failed: {}", first_difference);
  }
  return fmt::format(
      "a forecast kept by an earlier run is wrong: {}; remove the folder \"forecasts\" in the cache "
      "folder, or run without the cache",
      first_difference);
}

LookaheadCheck check_no_lookahead(
    std::span<const SymbolResult> results, ForecastSource& source, Checked which,
    const std::function<void(std::size_t done, std::size_t total)>& progress) {
  LookaheadCheck check;
  for (const SymbolResult& result : results) check.num_decisions += result.plan.count;
  const std::vector<Decision> chosen = choose(results, which);
  for (std::size_t begin = 0; begin < chosen.size(); begin += kGroup) {
    const auto group = std::span(chosen).subspan(begin, std::min(kGroup, chosen.size() - begin));
    std::vector<tables::Bars> copies;
    copies.reserve(group.size());  // requests point at them
    std::vector<TargetRequest> requests;
    for (const Decision& decision : group) {
      const SymbolPlan& plan = results[decision.symbol].plan;
      const std::size_t bar = plan.first + decision.window - plan.rules.lag;
      copies.push_back(poisoned(*plan.bars, bar));
      for (const tables::Target target : tables::kTargets)
        requests.push_back({&copies.back(), bar, target});
    }
    std::vector<TargetForecast> again(requests.size());
    source.forecast(requests, again);
    for (std::size_t i = 0; i < group.size(); ++i) {
      BarForecast forecast;
      std::copy_n(again.begin() + static_cast<std::ptrdiff_t>(i * forecast.size()), forecast.size(),
                  forecast.begin());
      const SymbolResult& result = results[group[i].symbol];
      const std::string what = difference(result, group[i].window, copies[i], forecast);
      ++check.num_checked;
      if (what.empty()) continue;
      if (check.num_different++ == 0) {
        const std::size_t target = result.plan.first + group[i].window;
        const tables::Bars& bars = *result.plan.bars;
        check.kept_forecast_differs =
            !same_bits(result.forecasts[group[i].window],
                       forecast_again(source, bars, target - result.plan.rules.lag));
        check.first_difference = fmt::format(
            "{} at {}: {} {}", bars.symbol, bars.time_text(target), what,
            check.kept_forecast_differs ? "is not what the model gives for the same rows"
                                        : "changed with rows after the decision");
      }
    }
    if (progress) progress(begin + group.size(), chosen.size());
  }
  return check;
}

}  // namespace toto::backtest
