// The top of the report: the best strategy in figures, what they are worth, and the coming bar.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backtest/report_parts.h"
#include "backtest/signal.h"
#include "base/text.h"
#include "report/svg.h"

namespace toto::backtest {
namespace {

constexpr std::string_view kTooShort = "too short to annualise";

// A percent sign stays on the line of its number.
std::string unbroken(std::string_view text) {
  std::string result = report::escape_xml(text);
  for (std::size_t at = 0; (at = result.find(" %", at)) != std::string::npos;) {
    result.replace(at, 1, "\u00a0");
  }
  return result;
}

std::string tile(std::string_view name, std::string_view value, std::string_view remark,
                 bool is_word = false) {
  return fmt::format("<div class=\"tile\"><span>{}</span><b{}>{}</b><span>{}</span></div>\n",
                     unbroken(name), is_word ? " class=\"word-value\"" : "", unbroken(value),
                     unbroken(remark));
}

std::string quarter_of(const Story& story) {
  return fmt::format("{} bars of {:g} per year", story.count(), story.bars_per_year);
}

std::string sharpe_tile(const Story& story) {
  if (story.too_short()) return tile("Sharpe ratio", kTooShort, quarter_of(story), true);
  const Track& best = story.best_track();
  const Interval range = sharpe_interval(best.returns, story.bars_per_year);
  return tile("Sharpe ratio", decimal(best.metrics.sharpe),
              fmt::format("95 % interval {} to {}; buy-hold {}", decimal(range.low),
                          decimal(range.high), decimal(story.buy_hold().metrics.sharpe)));
}

std::string alpha_tile(const Story& story) {
  const Track& best = story.best_track();
  const std::string beta = fmt::format("beta {} against buy-hold", decimal(best.metrics.beta));
  if (story.too_short()) return tile("Alpha per year", kTooShort, beta, true);
  const Track* file = story.benchmark_file();
  const std::string other =
      file == nullptr ? ""
                      : fmt::format("; {} and beta {} against {}", percent(best.other_alpha),
                                    decimal(best.other_beta), file->label);
  return tile("Alpha per year", percent(best.metrics.alpha), beta + other);
}

// "eight"; figures from eleven on.
std::string in_words(std::size_t number) {
  constexpr std::array<std::string_view, 11> kWords = {
      "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"};
  return number < kWords.size() ? std::string(kWords[number]) : fmt::format("{}", number);
}

std::string tried_words(std::size_t number) {
  return number == 1 ? "one strategy was tried" : in_words(number) + " strategies were tried";
}

// What `probability`, that the Sharpe ratio is above 0, is worth for the best of `tried` ones: if
// none had skill, the best would look this good with probability 1 - p^tried.
std::string luck_words(double probability, std::size_t tried) {
  const double luck = 1 - std::pow(probability, static_cast<double>(tried));
  if (std::isnan(luck)) return "the returns are too few or too equal to judge luck";
  constexpr double kStrong = 0.05, kWeak = 0.2;
  return fmt::format("by luck alone {} would look this good {} of the time: {}",
                     tried == 1 ? "it" : "the best of them",
                     luck < 0.01 ? "less than 1 %" : share(luck, 0),
                     luck < kStrong ? "evidence of skill"
                     : luck < kWeak ? "weak evidence of skill"
                                    : "no evidence of skill");
}

// "beats buy-hold (Sharpe 1.62 against 1.53)"
std::string against_buy_hold(const Story& story) {
  const double ours = story.best_track().metrics.sharpe, held = story.buy_hold().metrics.sharpe;
  const std::string_view verb = std::isnan(ours) || std::isnan(held) ? "cannot be compared with"
                                : ours > held                        ? "beats"
                                                                     : "does not beat";
  return fmt::format("{} buy-hold{}", verb,
                     story.too_short()
                         ? ""
                         : fmt::format(" (Sharpe {} against {})", decimal(ours), decimal(held)));
}

}  // namespace

std::string tiles(const Story& story) {
  const Track& best = story.best_track();
  const TradingMetrics &metrics = best.metrics, &held = story.buy_hold().metrics;
  std::string html = "<div class=\"tiles\">\n";
  html +=
      tile("Best strategy by Sharpe", best.label,
           story.num_tried == 0 ? "no other was run" : fmt::format("of {} tried", story.num_tried),
           true);
  html += sharpe_tile(story);
  html += tile("Total return", percent(metrics.total_return),
               fmt::format("buy-hold {}", percent(held.total_return)));
  html += tile("Largest drawdown", percent(metrics.max_drawdown),
               fmt::format("buy-hold {}", percent(held.max_drawdown)));
  html += tile("Exposure", share(metrics.exposure, 0),
               counted(static_cast<std::int64_t>(metrics.trades), "trade"));
  html += alpha_tile(story);
  html += tile("Sharpe above 0", share(metrics.probabilistic_sharpe, 0),
               story.num_tried > 1 ? "probability, of this one alone" : "probability");
  if (const Track* file = story.benchmark_file()) {
    html += tile(fmt::format("Benchmark {}", file->label), percent(file->metrics.total_return),
                 fmt::format("drawdown {}{}", percent(file->metrics.max_drawdown),
                             story.too_short() ? "" : ", Sharpe " + decimal(file->metrics.sharpe)));
  }
  return html + "</div>\n";
}

std::string verdict(const Story& story) {
  if (story.num_tried == 0) return {};
  const Track& best = story.best_track();
  return paragraph(fmt::format("For its risk {} {}; {}, and {}.", best.label,
                               against_buy_hold(story), tried_words(story.num_tried),
                               luck_words(best.metrics.probabilistic_sharpe, story.num_tried)),
                   "verdict");
}

std::string symbol_tiles(std::span<const Story> stories, std::size_t num_symbols) {
  std::string html = "<div class=\"tiles\">\n";
  const Story* best = nullptr;
  const auto probability = [](const Story& story) {
    const double value = story.best_track().metrics.probabilistic_sharpe;
    return std::isnan(value) ? -1 : value;
  };
  for (const Story& story : stories) {
    const TradingMetrics& metrics = story.best_track().metrics;
    html += tile(
        fmt::format("{}: {}", story.name, story.best_track().label),
        story.too_short() ? std::string(kTooShort) : "Sharpe " + decimal(metrics.sharpe),
        fmt::format("return {}, buy-hold {}; Sharpe above 0: {}", percent(metrics.total_return),
                    percent(story.buy_hold().metrics.total_return),
                    share(metrics.probabilistic_sharpe, 0)),
        true);
    if (best == nullptr || probability(story) > probability(*best)) best = &story;
  }
  html += "</div>\n";
  if (best->num_tried == 0) return html;
  return html +
         paragraph(fmt::format("The symbols have no date in common, so there is no portfolio. "
                               "For its risk {} on {} {}; {} on {} symbols, and {}.",
                               best->best_track().label, best->name, against_buy_hold(*best),
                               tried_words(best->num_tried), num_symbols,
                               luck_words(best->best_track().metrics.probabilistic_sharpe,
                                          best->num_tried * num_symbols)),
                   "verdict");
}

// ------------------------------------------------------------------------------------ coming bar

namespace {

const StrategySignal* find_signal(const SymbolSignal& signal, const Strategy* strategy) {
  const auto found = std::ranges::find(signal.strategies, strategy, &StrategySignal::strategy);
  return found == signal.strategies.end() ? nullptr : &*found;
}

// "AAPL, maxdiff: long, limit 101.20, take-profit 103.00, else at the close. High ..."
std::string order_sentence(const SymbolSignal& signal, const StrategySignal& chosen) {
  std::vector<std::string> parts;
  for (int leg = 0; leg < chosen.orders.num_legs; ++leg) {
    const Order& order = chosen.orders.legs[static_cast<std::size_t>(leg)];
    std::string part(name_of(order.side));
    if (order.side != Side::flat) {
      part += ", " + entry_of(order, signal.fill_at_close);
      if (order.take_profit == order.take_profit) part += ", take-profit " + take_profit_of(order);
      part += order.take_profit == order.take_profit ? ", else out at the close"
                                                     : ", out " + exit_of(*chosen.strategy, order);
    }
    parts.push_back(std::move(part));
  }
  return fmt::format("{}, {}: {}. {}", signal.symbol, chosen.strategy->name, fmt::join(parts, "; "),
                     chosen.reason);
}

// One row per leg.
void add_orders(Table& table, const SymbolSignal& signal, const StrategySignal& chosen) {
  const auto or_mark = [](const std::string& text) {
    return text.empty() ? std::string("–") : text;
  };
  for (int leg = 0; leg < chosen.orders.num_legs; ++leg) {
    const Order& order = chosen.orders.legs[static_cast<std::size_t>(leg)];
    table.add({signal.symbol, chosen.strategy->name, name_of(order.side),
               or_mark(entry_of(order, signal.fill_at_close)), take_profit_of(order),
               or_mark(exit_of(*chosen.strategy, order)), leg == 0 ? chosen.reason : ""});
  }
}

std::string forecasts_table(std::span<const SymbolSignal> signals) {
  Table table({"Symbol", "bar", "last close", "predicted close", "10 % to 90 %", "high", "low",
               "higher close"},
              2);
  const auto point = [](const SymbolSignal& signal, tables::Target target) {
    return price(forecast_of(signal.forecast, target).point);
  };
  for (const SymbolSignal& signal : signals) {
    const TargetForecast& close = forecast_of(signal.forecast, tables::Target::close);
    table.add(
        {signal.symbol, signal.target_time, price(signal.last_price), price(close.point),
         fmt::format("{} to {}", price(close.quantiles.front()), price(close.quantiles.back())),
         point(signal, tables::Target::high), point(signal, tables::Target::low),
         share(signal.probability_up, 1)});
  }
  return table.dense().html();
}

}  // namespace

std::string next_bar(std::span<const SymbolSignal> signals, std::span<const Story> stories) {
  if (signals.empty()) return {};
  std::vector<std::string> sentences;
  Table all({"Symbol", "strategy", "side", "entry", "take-profit", "exit", "why"}, 7);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (const auto* chosen = find_signal(signals[i], stories[i].best_track().strategy)) {
      sentences.push_back(order_sentence(signals[i], *chosen));
    }
    for (const StrategySignal& item : signals[i].strategies) add_orders(all, signals[i], item);
  }
  return fmt::format(
      "<section class=\"next\">\n<h2>Next bar</h2>\n{}{}{}<details>\n<summary>The orders of every "
      "strategy</summary>\n{}</details>\n</section>\n",
      paragraph(
          "The decision after the last bar, by the rules of this backtest. Below, the orders of "
          "each symbol's best strategy; toto signal prints all of them.",
          "subtitle"),
      forecasts_table(signals), list_of_sentences(sentences), all.dense().wrap_last().html());
}

}  // namespace toto::backtest
