// The findings of a run in plain words; every sentence says how much data it is based on.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backtest/report_parts.h"
#include "backtest/universe.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

constexpr double kSignificant = 0.05;
constexpr std::size_t kFewTrades = 30;  // with fewer, a verdict is weak

// ------------------------------------------------------------------------------------ strategies

std::string verdict_on_one(const SymbolResult& result, const StrategyResult& strategy) {
  const TradingMetrics& metrics = strategy.metrics;
  const TradingMetrics& benchmark = result.find(benchmark_strategy())->metrics;
  const bool beats = metrics.total_return > benchmark.total_return;
  return fmt::format("{} {} buy-hold: {} against {}, in {}{}.", strategy.strategy->name,
                     beats ? "beats" : "does not beat", percent(metrics.total_return),
                     percent(benchmark.total_return),
                     counted(std::int64_t(metrics.trades), "trade"),
                     metrics.trades < kFewTrades ? ", too few to tell skill from luck" : "");
}

std::string verdict_on_all(std::span<const SymbolResult> results, const UniverseRow& row) {
  const auto few = std::count_if(results.begin(), results.end(), [&](const SymbolResult& result) {
    return result.find(*row.strategy)->metrics.trades < kFewTrades;
  });
  const std::string weak =
      few == 0 ? ""
               : fmt::format(
                     "; on {} of them it made fewer than {} trades, too few to tell skill "
                     "from luck",
                     few, kFewTrades);
  if (row.num_ahead == 0) {
    return fmt::format("{} does not beat buy-hold on any of {} symbols, in {} trades{}.",
                       row.strategy->name, results.size(), row.num_trades, weak);
  }
  return fmt::format("{} beats buy-hold on {} of {} symbols, and does not on {}, in {} trades{}.",
                     row.strategy->name, row.num_ahead, results.size(),
                     results.size() - row.num_ahead, row.num_trades, weak);
}

// A reminder that many comparisons find something by chance.
std::string comparisons(std::size_t num_strategies, std::size_t num_symbols) {
  constexpr std::array<std::string_view, 8> kWords = {"One",  "Two", "Three", "Four",
                                                      "Five", "Six", "Seven", "Eight"};
  const std::size_t count = num_strategies * num_symbols;
  if (count == 1) return "One strategy was tried; it may look good or bad by luck alone.";
  const std::string number = num_strategies <= kWords.size()
                                 ? std::string(kWords[num_strategies - 1])
                                 : fmt::format("{}", num_strategies);
  const std::string tried =
      fmt::format("{} {} tried", number, num_strategies == 1 ? "strategy was" : "strategies were");
  if (num_symbols == 1) return tried + ". By luck alone one or two would look good.";
  return fmt::format(
      "{} on {} symbols. By luck alone some of these {} comparisons would look good.", tried,
      num_symbols, count);
}

// ------------------------------------------------------------------------------------- forecasts

struct AgainstPersistence {
  std::size_t better = 0, clearly_better = 0, clearly_worse = 0;
};

AgainstPersistence against_persistence(std::span<const SymbolResult> results) {
  AgainstPersistence counts;
  for (const SymbolResult& result : results) {
    const ForecastAccuracy& accuracy = close_accuracy(result);
    const bool better = accuracy.model.mae < accuracy.persistence.mae;
    if (better) ++counts.better;
    if (!(accuracy.dm_p_value < kSignificant)) continue;
    ++(better ? counts.clearly_better : counts.clearly_worse);
  }
  return counts;
}

std::string forecast_verdict(std::span<const SymbolResult> results,
                             const AgainstPersistence& counts) {
  if (results.size() > 1) {
    const std::string_view by_chance =
        results.size() < 20 ? "" : "; of such tests one in twenty is significant by chance";
    if (counts.better == 0) {
      return fmt::format(
          "The forecast of the close does not beat persistence, the forecast that nothing changes, "
          "on any of {} symbols, by mean absolute error; on {} it is significantly worse "
          "(Diebold-Mariano, p < 0.05{}).",
          results.size(), counts.clearly_worse, by_chance);
    }
    return fmt::format(
        "The forecast of the close beats persistence, the forecast that nothing changes, on {} of "
        "{} symbols by mean absolute error, and does not on {}; it is significantly better on {} "
        "and significantly worse on {} (Diebold-Mariano, p < 0.05{}).",
        counts.better, results.size(), results.size() - counts.better, counts.clearly_better,
        counts.clearly_worse, by_chance);
  }
  const ForecastAccuracy& accuracy = close_accuracy(results.front());
  const double p = accuracy.dm_p_value;
  const std::string tested =
      std::isnan(p) ? "the difference cannot be tested"
                    : fmt::format("Diebold-Mariano p {}{}, {}", p < 0.001 ? "" : "= ", p_value(p),
                                  p < kSignificant ? "a significant difference"
                                                   : "no significant difference");
  return fmt::format(
      "The forecast of the close {} persistence, the forecast that nothing changes: mean absolute "
      "error {} against {} over {} bars ({}).",
      counts.better == 1 ? "beats" : "does not beat", significant(accuracy.model.mae),
      significant(accuracy.persistence.mae), results.front().plan.count, tested);
}

// With bands that are too wide careful strategies do not trade, with narrow ones they trade too
// much.
enum class BandWidth { narrow, right, wide };

BandWidth band_of(const SymbolResult& result) {
  constexpr double kFarOff = 0.1;
  const double held = close_accuracy(result).coverage_80;
  return held > 0.8 + kFarOff   ? BandWidth::wide
         : held < 0.8 - kFarOff ? BandWidth::narrow
                                : BandWidth::right;
}

std::string_view name_of(BandWidth band) {
  constexpr std::array<std::string_view, 3> kNames = {"too narrow", "about right", "too wide"};
  return kNames[static_cast<std::size_t>(band)];
}

std::string held_by(const SymbolResult& result) {
  return fmt::format("{} of the closes of {}", share(close_accuracy(result).coverage_80, 0),
                     result.plan.bars->symbol);
}

// Per symbol: a wide band of one does not compensate a narrow band of another.
std::string band_verdict(std::span<const SymbolResult> results) {
  if (results.size() <= kMaxDetailed) {
    std::vector<std::string> parts;
    for (const SymbolResult& result : results) {
      parts.push_back(fmt::format("{}, {}", held_by(result), name_of(band_of(result))));
    }
    return fmt::format("The 80 % band of the close held {}.", fmt::join(parts, "; "));
  }
  const auto count = [&](BandWidth band) {
    return std::count_if(results.begin(), results.end(),
                         [&](const SymbolResult& result) { return band_of(result) == band; });
  };
  const auto [narrowest, widest] = std::minmax_element(
      results.begin(), results.end(), [](const SymbolResult& a, const SymbolResult& b) {
        return close_accuracy(a).coverage_80 < close_accuracy(b).coverage_80;
      });
  return fmt::format(
      "The 80 % band of the close is about right on {} of {} symbols (it held 70 to 90 %), too "
      "wide on {} and too narrow on {}; it held from {} to {}.",
      count(BandWidth::right), results.size(), count(BandWidth::wide), count(BandWidth::narrow),
      held_by(*narrowest), held_by(*widest));
}

}  // namespace

std::string verdicts(const ReportInput& input) {
  std::vector<std::string> sentences;
  if (!input.engine.trained) {
    sentences.push_back(fmt::format(
        "The model {} is untrained: its weights are random, and these results say nothing about "
        "forecasting.",
        input.engine.model));
  }
  if (const std::string warning = fill_warning(input.spec); !warning.empty()) {
    sentences.push_back(fmt::format("Not possible in practice: {}.", warning));
  }
  const std::span<const SymbolResult> results = input.results;
  std::size_t num_strategies = 0;
  for (const UniverseRow& row : universe_of(results)) {
    if (row.strategy == &benchmark_strategy()) continue;
    ++num_strategies;
    sentences.push_back(results.size() == 1
                            ? verdict_on_one(results.front(), *results.front().find(*row.strategy))
                            : verdict_on_all(results, row));
  }
  if (num_strategies > 0) sentences.push_back(comparisons(num_strategies, results.size()));
  const AgainstPersistence counts = against_persistence(results);
  sentences.push_back(forecast_verdict(results, counts));
  sentences.push_back(band_verdict(results));
  sentences.push_back(lookahead_sentence(input.lookahead));
  return section("In plain words", list_of_sentences(sentences));
}

}  // namespace toto::backtest
