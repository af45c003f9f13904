#include "backtest/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backtest/report_parts.h"
#include "report/page.h"
#include "report/svg.h"

namespace toto::backtest {
namespace {

// Beyond these a page of charts helps nobody; the tables hold every symbol.
constexpr std::size_t kMaxDetailed = 12;

std::string section(std::string_view title, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", report::escape_xml(title), body);
}

const TradingMetrics* benchmark_of(const SymbolResult& result) {
  const StrategyResult* found = result.find(Strategy::buy_hold);
  return found == nullptr ? nullptr : &found->metrics;
}

const ForecastAccuracy& close_accuracy(const SymbolResult& result) {
  return result.accuracy[static_cast<std::size_t>(Target::close)];
}

// ------------------------------------------------------------------------------- in plain words

std::string strategy_verdict(std::span<const SymbolResult> results, Strategy strategy) {
  std::size_t beats = 0;
  const TradingMetrics* metrics = nullptr;
  const TradingMetrics* benchmark = nullptr;
  for (const SymbolResult& result : results) {
    metrics = &result.find(strategy)->metrics;
    benchmark = benchmark_of(result);
    if (metrics->total_return > benchmark->total_return) ++beats;
  }
  if (results.size() == 1) {
    return fmt::format("{} {} buy-hold: {} against {}.", name_of(strategy),
                       beats == 1 ? "beats" : "does not beat", percent(metrics->total_return),
                       percent(benchmark->total_return));
  }
  if (beats == 0) {
    return fmt::format("{} does not beat buy-hold on any of {} symbols.", name_of(strategy),
                       results.size());
  }
  return fmt::format("{} beats buy-hold on {} of {} symbols, and does not on {}.",
                     name_of(strategy), beats, results.size(), results.size() - beats);
}

std::string forecast_verdict(std::span<const SymbolResult> results) {
  constexpr double kSignificant = 0.05;
  std::size_t beats = 0, clearly = 0, clearly_not = 0;
  for (const SymbolResult& result : results) {
    const ForecastAccuracy& accuracy = close_accuracy(result);
    const bool better = accuracy.model.mae < accuracy.persistence.mae;
    if (better) ++beats;
    if (accuracy.dm_p_value < kSignificant) ++(better ? clearly : clearly_not);
  }
  if (results.size() > 1 && beats == 0) {
    return fmt::format(
        "The forecast of the close does not beat persistence, the forecast that nothing changes, "
        "on any of {} symbols, by mean absolute error; on {} it is significantly worse "
        "(Diebold-Mariano, p < 0.05).",
        results.size(), clearly_not);
  }
  if (results.size() > 1) {
    return fmt::format(
        "The forecast of the close beats persistence, the forecast that nothing changes, on {} of "
        "{} symbols by mean absolute error, and does not on {}; it is significantly better on {} "
        "and "
        "significantly worse on {} (Diebold-Mariano, p < 0.05).",
        beats, results.size(), results.size() - beats, clearly, clearly_not);
  }
  const ForecastAccuracy& accuracy = close_accuracy(results.front());
  const std::string p_value =
      std::isnan(accuracy.dm_p_value)
          ? "the difference cannot be tested"
          : fmt::format("Diebold-Mariano p {}, {}",
                        accuracy.dm_p_value < 0.001 ? std::string("< 0.001")
                                                    : fmt::format("= {:.3f}", accuracy.dm_p_value),
                        accuracy.dm_p_value < kSignificant ? "a significant difference"
                                                           : "no significant difference");
  return fmt::format(
      "The forecast of the close {} persistence, the forecast that nothing changes: mean absolute "
      "error {} against {} ({}).",
      beats == 1 ? "beats" : "does not beat", significant(accuracy.model.mae),
      significant(accuracy.persistence.mae), p_value);
}

// Bands that are too wide make careful strategies idle, too narrow ones make them reckless.
std::string band_verdict(const ReportInput& input) {
  constexpr double kFarOff = 0.1;
  double sum = 0;
  for (const SymbolResult& result : input.results) sum += close_accuracy(result).coverage_80;
  const double mean = sum / static_cast<double>(input.results.size());
  const std::string_view verdict = mean > 0.8 + kFarOff   ? "too wide"
                                   : mean < 0.8 - kFarOff ? "too narrow"
                                                          : "about right";
  const bool scaled = input.options.transform != Transform::price && verdict == "too wide";
  return fmt::format("The 80 % band of the close held {} of all closes: it is {}{}.",
                     share(mean, 0), verdict,
                     scaled && input.options.return_scale == 1
                         ? "; --return-scale 100 shows the network percents, which may narrow it"
                         : "");
}

std::string verdicts(const ReportInput& input) {
  std::vector<std::string> sentences;
  if (!input.engine.trained) {
    sentences.push_back(fmt::format(
        "The model {} is untrained, its weights are random: nothing here says anything about "
        "forecasting.",
        input.engine.model));
  }
  for (const StrategyResult& strategy : input.results.front().strategies) {
    if (strategy.strategy == Strategy::buy_hold) continue;
    sentences.push_back(strategy_verdict(input.results, strategy.strategy));
  }
  sentences.push_back(forecast_verdict(input.results));
  sentences.push_back(band_verdict(input));
  sentences.push_back(lookahead_sentence(input.lookahead));
  return section("In plain words", list_of_sentences(sentences));
}

// ---------------------------------------------------------------------------------------- tables

std::string headline(const ReportInput& input) {
  Table table({"Symbol", "strategy", "return", "against buy-hold", "CAGR", "volatility", "Sharpe",
               "Sortino", "drawdown", "Calmar", "trades"},
              2);
  for (const SymbolResult& result : input.results) {
    const TradingMetrics* benchmark = benchmark_of(result);
    for (const StrategyResult& strategy : result.strategies) {
      const TradingMetrics& m = strategy.metrics;
      const double ahead = m.total_return - benchmark->total_return;
      const auto mark = ahead > 0   ? Table::Mark::better
                        : ahead < 0 ? Table::Mark::worse
                                    : Table::Mark::none;
      table.add({result.plan.bars->symbol,
                 name_of(strategy.strategy),
                 percent(m.total_return),
                 {strategy.strategy == Strategy::buy_hold ? "" : percent(ahead), mark},
                 percent(m.cagr),
                 share(m.volatility),
                 decimal(m.sharpe),
                 decimal(m.sortino),
                 percent(m.max_drawdown),
                 decimal(m.calmar),
                 fmt::format("{}", m.trades)});
    }
  }
  return section("Strategies against buy-hold",
                 paragraph("Returns are total, after all costs; the comparison is a difference of "
                           "total returns.",
                           "subtitle") +
                     table.dense().html());
}

std::string activity(const ReportInput& input) {
  Table table({"Symbol", "strategy", "exposure", "turnover a bar", "win rate", "profit factor",
               "average trade", "fees paid", "bars of its largest drawdown", "ambiguous bars"},
              2);
  for (const SymbolResult& result : input.results) {
    for (const StrategyResult& strategy : result.strategies) {
      const TradingMetrics& m = strategy.metrics;
      table.add({result.plan.bars->symbol, name_of(strategy.strategy), share(m.exposure, 1),
                 decimal(m.turnover), share(m.win_rate, 1), decimal(m.profit_factor),
                 percent(m.average_trade), share(m.fees_paid),
                 fmt::format("{}", m.max_drawdown_bars), fmt::format("{}", m.ambiguous_bars)});
    }
  }
  return section("How they traded", table.dense().html());
}

std::string forecast_table(const ReportInput& input) {
  Table table(
      {"Symbol", "target", "MAE", "of persistence", "ratio", "DM p", "right direction",
       "80 % band holds", "RMSE", "of persistence", "sMAPE", "MASE", "WQL", "of persistence"},
      2);
  for (const SymbolResult& result : input.results) {
    for (const Target target : kTargets) {
      const ForecastAccuracy& a = result.accuracy[static_cast<std::size_t>(target)];
      const double ratio = a.model.mae / a.persistence.mae;
      table.add({result.plan.bars->symbol,
                 name_of(target),
                 significant(a.model.mae),
                 significant(a.persistence.mae),
                 {decimal(ratio, 3), ratio < 1   ? Table::Mark::better
                                     : ratio > 1 ? Table::Mark::worse
                                                 : Table::Mark::none},
                 decimal(a.dm_p_value, 3),
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
  for (const Skipped& item : input.skipped) sentences.push_back(item.reason + "; skipped");
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
  const RunOptions& options = input.options;
  std::vector<std::string> sentences = {
      fmt::format("A decision after the close of bar t concerns bar t + {}, and knows no row after "
                  "t.",
                  options.lag),
      fmt::format("The network sees the {} of each price{}; it was run by toto.cpp {}, model {} "
                  "({}), mode {}, {}, seed {}.",
                  options.transform == Transform::price ? "history" : "history of changes",
                  options.return_scale == 1 ? "" : fmt::format(", times {}", options.return_scale),
                  input.engine.version, input.engine.model,
                  input.engine.trained ? "trained" : "untrained", input.engine.mode,
                  input.engine.dtype, input.engine.seed),
      fmt::format(
          "Fills at the open happen at {}; slippage of a market fill is {} bps, the fee of "
          "a side {}, borrowing costs {} a year.",
          options.fill_at_close ? "the close before" : "the open", options.slippage_bps,
          options.fee_bps ? fmt::format("{} bps", *options.fee_bps) : "5 bps, of crypto 15 bps",
          percent(options.borrow_apr).substr(1)),
      "Every figure can be computed again from forecasts.csv, trades.csv and returns.csv; "
      "results.json holds every setting."};
  return section("How this was computed", list_of_sentences(sentences));
}

// What the page is about, in one line: symbols, period, model, costs.
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
  return fmt::format(
      "{}{}; target bars from {} to {}; forecasts by {}, decided {} before each bar",
      fmt::join(names, ", "), input.results.size() > kNamed ? ", ..." : "", first, last,
      input.engine.model,
      input.options.lag == 1 ? "one bar" : fmt::format("{} bars", input.options.lag));
}

const SymbolResult* same_symbol(std::span<const SymbolResult> results, const std::string& symbol) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const SymbolResult& result) {
    return result.plan.bars->symbol == symbol;
  });
  return found == results.end() ? nullptr : &*found;
}

std::string detail(const ReportInput& input, const SymbolResult& result) {
  const Bars& bars = *result.plan.bars;
  const std::size_t last = result.plan.first + result.plan.count - 1;
  std::string body = paragraph(fmt::format("{}, {} target bars from {} to {}, {} bars a year",
                                           name_of(result.plan.rules.asset), result.plan.count,
                                           bars.time_text(result.plan.first), bars.time_text(last),
                                           result.plan.bars_per_year),
                               "subtitle");
  body += symbol_charts(result) + monthly_returns(result) + cost_sweep(result);
  body += lag_comparison(result, same_symbol(input.other_results, bars.symbol), input.other_lag);
  body += coverage_table(result) + worst_trades(result);
  body += "<h3>Forecasts</h3>\n" + forecast_charts(result, input.engine.trained);
  return section(bars.symbol, body);
}

}  // namespace

std::string lookahead_sentence(const LookaheadCheck& check) {
  if (!check.passed()) {
    return fmt::format("LOOKAHEAD: {} of {} decisions changed when the rows after them did; {}.",
                       check.num_different, check.num_checked, check.first_difference);
  }
  return fmt::format(
      "No lookahead: {} of {} decisions were made again with every later row replaced by noise, "
      "and "
      "came out the same bit for bit.",
      check.num_checked == check.num_decisions ? "all" : fmt::format("{}", check.num_checked),
      check.num_decisions);
}

std::string report_html(const ReportInput& input) {
  std::string body = paragraph(scope_of(input), "subtitle") + verdicts(input) + headline(input) +
                     forecast_table(input) + activity(input);
  const std::size_t shown = std::min(input.results.size(), kMaxDetailed);
  for (const SymbolResult& result : input.results.first(shown)) body += detail(input, result);
  if (shown < input.results.size()) {
    body += paragraph(fmt::format("Charts of the first {} of {} symbols; the tables above and the "
                                  "CSV files hold all of them.",
                                  shown, input.results.size()),
                      "subtitle");
  }
  body += data_section(input) + rules_section(input);
  const std::string title =
      input.results.size() == 1
          ? fmt::format("Backtest of {}", input.results.front().plan.bars->symbol)
          : fmt::format("Backtest of {} symbols", input.results.size());
  return report::html_page(title, body);
}

}  // namespace toto::backtest
