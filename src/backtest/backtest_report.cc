#include "backtest/backtest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "backtest/report_parts.h"
#include "backtest/universe.h"
#include "base/text.h"
#include "report/page.h"
#include "report/svg.h"

namespace toto::backtest {
namespace {

const TradingMetrics* benchmark_of(const SymbolResult& result) {
  const StrategyResult* found = result.find(benchmark_strategy());
  return found == nullptr ? nullptr : &found->metrics;
}

// ---------------------------------------------------------------------------------------- tables

// The symbols whose details are shown: all if they are few, otherwise a selection.
using Shown = std::vector<const SymbolResult*>;

std::string headline(const Shown& shown) {
  Table table(
      {"Symbol", "strategy", "return", "against buy-hold, points", "CAGR", "volatility", "Sharpe",
       "Sortino", "drawdown", "Calmar", "alpha", "beta", "Sharpe above 0", "trades"},
      2);
  bool any_short = false;
  for (const SymbolResult* result : shown) {
    const TradingMetrics* benchmark = benchmark_of(*result);
    // Annual figures of less than a quarter of a year say nothing.
    const bool too_short = too_short_to_annualise(result->plan.count, result->plan.bars_per_year);
    const auto annual = [&](const std::string& figure) {
      return too_short ? std::string("too short") : figure;
    };
    any_short |= too_short;
    for (const StrategyResult& strategy : result->strategies) {
      const TradingMetrics& m = strategy.metrics;
      const double ahead = m.total_return - benchmark->total_return;
      table.add(
          {result->plan.bars->symbol,
           strategy.strategy->name,
           percent(m.total_return),
           {strategy.strategy == &benchmark_strategy() ? "" : points(ahead), Table::mark_of(ahead)},
           annual(percent(m.cagr)),
           annual(share(m.volatility)),
           annual(decimal(m.sharpe)),
           annual(decimal(m.sortino)),
           percent(m.max_drawdown),
           annual(decimal(m.calmar)),
           annual(percent(m.alpha)),
           decimal(m.beta),
           share(m.probabilistic_sharpe, 0),
           fmt::format("{}", m.trades)});
    }
  }
  return section("Strategies against buy-hold",
                 paragraph(fmt::format("Returns are total, after all costs; the comparison is the "
                                       "difference of total returns in percentage points.{}",
                                       any_short ? " Too short to annualise: fewer bars than a "
                                                   "quarter of a year."
                                                 : ""),
                           "subtitle") +
                     table.dense().html());
}

std::string activity(const Shown& shown) {
  Table table({"Symbol", "strategy", "exposure", "turnover per bar", "win rate", "profit factor",
               "average trade", "fees paid", "worst 5 % of bars, from", "their mean",
               "bars of its largest drawdown", "ambiguous bars"},
              2);
  for (const SymbolResult* result : shown) {
    for (const StrategyResult& strategy : result->strategies) {
      const TradingMetrics& m = strategy.metrics;
      table.add({result->plan.bars->symbol, strategy.strategy->name, share(m.exposure, 1),
                 decimal(m.turnover), share(m.win_rate, 1), decimal(m.profit_factor),
                 percent(m.average_trade), share(m.fees_paid), percent(m.var_95),
                 percent(m.cvar_95), fmt::format("{}", m.max_drawdown_bars),
                 fmt::format("{}", m.ambiguous_bars)});
    }
  }
  return section("How they traded", table.dense().html());
}

// For many symbols only the close, best forecasts first.
std::string forecast_table(const ReportInput& input) {
  const auto mae_ratio = [](const ForecastAccuracy& a) { return a.model.mae / a.persistence.mae; };
  std::vector<const SymbolResult*> order;
  for (const SymbolResult& result : input.results) order.push_back(&result);
  const bool many = order.size() > kMaxDetailed;
  if (many) {
    const auto key = [&](const SymbolResult* result) {
      const double ratio = mae_ratio(close_accuracy(*result));
      return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
    };
    std::sort(order.begin(), order.end(), [&](const SymbolResult* a, const SymbolResult* b) {
      return std::tuple(key(a), a) < std::tuple(key(b), b);
    });
  }
  Table table(
      {"Symbol", "target", "MAE", "of persistence", "ratio", "DM p", "right direction",
       "80 % band holds", "RMSE", "of persistence", "sMAPE", "MASE", "WQL", "of persistence"},
      2);
  for (const SymbolResult* result : order) {
    for (const tables::Target target : tables::kTargets) {
      if (many && target != tables::Target::close) continue;
      const ForecastAccuracy& a = result->accuracy[static_cast<std::size_t>(target)];
      const double ratio = mae_ratio(a);
      table.add({result->plan.bars->symbol,
                 name_of(target),
                 significant(a.model.mae),
                 significant(a.persistence.mae),
                 {decimal(ratio, 3), Table::mark_of(1 - ratio)},
                 p_value(a.dm_p_value),
                 share(a.direction_accuracy, 1),
                 share(a.coverage_80, 1),
                 significant(a.model.rmse),
                 significant(a.persistence.rmse),
                 share(a.model.smape),
                 decimal(a.model.mase, 3),
                 decimal(a.model.wql, 4),
                 decimal(a.persistence.wql, 4)});
    }
  }
  return section(
      "Forecasts against persistence",
      paragraph("Persistence forecasts each price as its own last value. A ratio below 1 "
                "means the model was closer; DM p is the Diebold-Mariano test of that difference.",
                "subtitle") +
          table.dense().html());
}

std::string data_section(const ReportInput& input) {
  std::vector<std::string> sentences;
  for (const SkippedSymbol& item : input.skipped) sentences.push_back(item.reason + "; skipped");
  for (const std::string& note : input.notes) sentences.push_back(note);
  if (sentences.empty()) {
    return section("Data", paragraph("No gaps, holidays, splits or odd bars were found."));
  }
  constexpr std::size_t kMaxShown = 500;
  if (sentences.size() > kMaxShown) {
    const std::size_t more = sentences.size() - kMaxShown;
    sentences.resize(kMaxShown);
    sentences.push_back(fmt::format("and {} more, printed as warnings by the run", more));
  }
  return section("Data", list_of_sentences(sentences));
}

std::string rules_section(const ReportInput& input) {
  const BacktestSpec& spec = input.spec;
  constexpr std::string_view kHowToCheck =
      "Every figure can be computed again from forecasts.csv, trades.csv and returns.csv; "
      "results.json holds every setting.";
  const std::vector<std::string> sentences = {
      fmt::format(
          "A decision after the close of bar t is about bar t + {} and uses no row after t.",
          spec.lag),
      fmt::format("The network sees {}; it was run by toto.cpp {}, model {} ({}), mode {}, {}, "
                  "seed {}.",
                  spec.transform == Transform::price
                      ? "the history of each price"
                      : "the change of each price from the close a decision lag before it",
                  input.engine.version, input.engine.model,
                  input.engine.trained ? "trained" : "untrained", input.engine.mode,
                  input.engine.dtype, input.engine.seed),
      fmt::format("Fills at the open happen at {}; slippage of a market fill is {}, the fee per "
                  "side {}, borrowing costs {} per year.",
                  spec.fill_at_close ? "the close before" : "the open",
                  spec.slippage_bps ? fmt::format("{} bps", *spec.slippage_bps) : "5 bps (fx 0.5)",
                  spec.fee_bps ? fmt::format("{} bps", *spec.fee_bps) : "5 bps (crypto 15, fx 0.5)",
                  percent(spec.borrow_apr).substr(1)),
      fmt::format("Bars per year, the basis of annual figures: {}.",
                  fmt::join(calendar_lines(input.results), "; ")),
      std::string(kHowToCheck)};
  return section("How this was computed", list_of_sentences(sentences));
}

// The subject of the page in one line: symbols, period, model, costs.
std::string scope_of(const ReportInput& input) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> names;
  std::string first, last;
  for (const SymbolResult& result : input.results) {
    const SymbolPlan& plan = result.plan;
    if (names.size() < kNamed) names.push_back(plan.bars->symbol);
    const std::string from = plan.bars->time_text(plan.first);
    const std::string to = plan.bars->time_text(plan.first + plan.count - 1);
    if (first.empty() || from < first) first = from;
    if (to > last) last = to;
  }
  return fmt::format("{}{}; target bars from {} to {}; forecasts by {}, decided {} before each bar",
                     fmt::join(names, ", "), input.results.size() > kNamed ? ", ..." : "", first,
                     last, input.engine.model, bars_in_words(input.spec.lag));
}

const SymbolResult* same_symbol(std::span<const SymbolResult> results, const std::string& symbol) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const SymbolResult& result) {
    return result.plan.bars->symbol == symbol;
  });
  return found == results.end() ? nullptr : &*found;
}

// Of the best strategy, and of what it competes with.
std::string month_maps(const Story& story) {
  std::string html = month_map(story, story.best_track());
  if (story.best != 0) html += month_map(story, story.buy_hold());
  if (const Track* file = story.benchmark_file()) html += month_map(story, *file);
  return html;
}

std::string detail(const ReportInput& input, const SymbolResult& result, const Story& story) {
  const tables::Bars& bars = *result.plan.bars;
  const std::size_t last = result.plan.first + result.plan.count - 1;
  std::string body = paragraph(fmt::format("{}, {} target bars from {} to {}, {} bars per year",
                                           name_of(result.plan.rules.asset), result.plan.count,
                                           bars.time_text(result.plan.first), bars.time_text(last),
                                           result.plan.bars_per_year),
                               "subtitle");
  body +=
      paragraph(fmt::format("{} of {} predicted bars cannot exist: their low is above, or their "
                            "high below, their open or close. They were used as they are.",
                            result.incoherent_bars, result.plan.count),
                "subtitle");
  if (input.results.size() > 1) body += tiles(story) + verdict(story);
  body += money_charts(story) + price_chart(story) + month_maps(story) + drawdown_table(story);
  body += sides_table(story) + trade_distribution(story) + cost_sweep(result);
  body += lag_comparison(result, same_symbol(input.other_results, bars.symbol), input.other_lag);
  body += coverage_table(result) + worst_trades(result);
  body += "<h3>Forecasts</h3>\n" + forecast_charts(result, input.engine.trained);
  return section(bars.symbol, body);
}

std::string portfolio_section(const Story& story, std::size_t num_symbols) {
  return section(story.name,
                 paragraph(fmt::format("The money is split evenly over the {} symbols before the "
                                       "first of their {} common dates, {} to {}, and left there.",
                                       num_symbols, story.count(), story.date(0),
                                       story.date(story.count() - 1)),
                           "subtitle") +
                     money_charts(story) + month_maps(story) + drawdown_table(story));
}

}  // namespace

std::string lookahead_sentence(const LookaheadCheck& check) {
  if (check.kept_forecast_differs) return fmt::format("WRONG FORECASTS: {}.", check.failure());
  if (!check.passed()) {
    return fmt::format("LOOKAHEAD: {} of {} decisions changed when later rows changed; {}.",
                       check.num_different, check.num_checked, check.first_difference);
  }
  return fmt::format(
      "No lookahead: {} of {} decisions were repeated with every later row replaced by noise and "
      "gave the same bits.",
      check.num_checked == check.num_decisions ? "all" : fmt::format("{}", check.num_checked),
      check.num_decisions);
}

std::vector<std::string> calendar_lines(std::span<const SymbolResult> results) {
  constexpr std::size_t kNamed = 8;
  std::map<std::tuple<double, tables::Asset, std::string_view>, std::vector<std::string>> groups;
  for (const SymbolResult& result : results) {
    const SymbolPlan& plan = result.plan;
    groups[{plan.bars_per_year, plan.rules.asset, plan.asset_reason}].push_back(
        one_line(plan.bars->symbol));
  }
  std::vector<std::string> lines;
  for (auto& [key, symbols] : groups) {
    const std::size_t more = symbols.size() > kNamed ? symbols.size() - kNamed : 0;
    symbols.resize(symbols.size() - more);
    const auto& [year, asset, reason] = key;
    lines.push_back(fmt::format("{}{}: {} ({}), {:g} bars per year", fmt::join(symbols, ", "),
                                more > 0 ? fmt::format(" and {} more", more) : "", name_of(asset),
                                reason, year));
  }
  return lines;
}

std::string report_html(const ReportInput& input) {
  Shown shown;
  std::vector<Story> stories;
  for (const std::size_t i : telling_symbols(input.results, kMaxDetailed)) {
    shown.push_back(&input.results[i]);
    stories.push_back(story_of(input.results[i], input.benchmark));
  }
  const std::optional<Story> portfolio = portfolio_story(input.results, input.benchmark);
  std::string body = paragraph(scope_of(input), "subtitle");
  if (portfolio) {
    body += tiles(*portfolio) + verdict(*portfolio);
  } else if (input.results.size() == 1) {
    body += tiles(stories.front()) + verdict(stories.front());
  } else {
    body += symbol_tiles(stories, input.results.size());
  }
  body += next_bar(input.signals, stories);
  if (portfolio) body += portfolio_section(*portfolio, input.results.size());
  body += verdicts(input) + universe_section(input);
  if (shown.size() < input.results.size()) {
    body += paragraph(
        fmt::format(
            "The rest of this page shows {} of {} symbols: those where the strategies did best "
            "against buy-hold on average, those in the middle and those where they did "
            "worst, a third each. The table of forecasts and the files hold all of them.",
            shown.size(), input.results.size()),
        "subtitle");
  }
  body += headline(shown) + forecast_table(input) + activity(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) body += detail(input, *shown[i], stories[i]);
  body += data_section(input) + rules_section(input);
  const std::string title =
      input.results.size() == 1
          ? fmt::format("Backtest of {}", input.results.front().plan.bars->symbol)
          : fmt::format("Backtest of {} symbols", input.results.size());
  return report::html_page(title, body);
}

}  // namespace toto::backtest
