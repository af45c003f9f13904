// Parts of the sections of the report. All text is escaped here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/backtest_report.h"
#include "backtest/report_story.h"

namespace toto::backtest {

std::string percent(double value, int decimals = 2);    // "+1.25 %", "–" if undefined
std::string share(double value, int decimals = 2);      // "1.25 %", without a sign
std::string decimal(double value, int decimals = 2);    // "1.25", "–" if undefined
std::string significant(double value, int digits = 4);  // "1.230"; "1.234e+05" if necessary
std::string points(double value);   // "+1.25": percentage points, of a difference of percentages
std::string p_value(double value);  // "0.123", "< 0.001"
std::string price(double value);    // decimals by its size, trailing zeros kept
std::string bars_in_words(std::size_t count);  // "one bar", "2 bars"
std::string section(std::string_view title, const std::string& body);
std::string paragraph(std::string_view text, std::string_view css_class = {});
std::string list_of_sentences(const std::vector<std::string>& sentences);

// Rows of plain text; a cell may be marked as better or worse than its benchmark.
class Table {
 public:
  enum class Mark { none, better, worse };
  // Positive differences are better.
  static Mark mark_of(double difference) {
    return difference > 0 ? Mark::better : difference < 0 ? Mark::worse : Mark::none;
  }
  struct Cell {
    Cell(std::string content, Mark benchmark = Mark::none)
        : text(std::move(content)), mark(benchmark) {}
    Cell(std::string_view content) : text(content) {}
    Cell(const char* content) : text(content) {}
    std::string text;
    Mark mark = Mark::none;
  };
  // The first `num_words` columns are text, aligned left.
  explicit Table(std::vector<std::string> header, std::size_t num_words = 1)
      : header_(std::move(header)), num_words_(num_words) {}
  // Small type and headers of several lines, for tables of many columns. Rows whose first of
  // several words is the same form a group that names it once.
  Table& dense() {
    dense_ = true;
    return *this;
  }
  // Lines of the last column are broken: it holds sentences.
  Table& wrap_last() {
    wrap_last_ = true;
    return *this;
  }
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  std::string html() const;

 private:
  std::vector<std::string> header_;
  std::size_t num_words_;
  bool dense_ = false, wrap_last_ = false;
  std::vector<std::vector<Cell>> rows_;
};

inline const ForecastAccuracy& close_accuracy(const SymbolResult& result) {
  return result.accuracy[static_cast<std::size_t>(tables::Target::close)];
}

// The top: the best strategy in figures, one sentence on what they are worth, the coming bar.
std::string tiles(const Story& story);
std::string verdict(const Story& story);  // empty if only buy-hold was run
// Instead of both, for several symbols without a portfolio: one tile each, and the best of them.
std::string symbol_tiles(std::span<const Story> stories, std::size_t num_symbols);
// stories[i] is that of signals[i].
std::string next_bar(std::span<const SymbolSignal> signals, std::span<const Story> stories);

std::string verdicts(const ReportInput& input);          // the section in plain words
std::string universe_section(const ReportInput& input);  // all symbols together; of one, nothing

// The parts about one symbol or the portfolio, in the order of the report.
std::string heading(std::string_view text);
std::string money_charts(const Story& story);  // equity, drawdown, rolling Sharpe
std::string price_chart(const Story& story);   // with the trades
std::string month_map(const Story& story, const Track& track);
std::string drawdown_table(const Story& story);
std::string sides_table(const Story& story);
std::string trade_distribution(const Story& story);
std::string cost_sweep(const SymbolResult& result);
std::string lag_comparison(const SymbolResult& result, const SymbolResult* other,
                           std::size_t other_lag);
std::string forecast_charts(const SymbolResult& result, bool trained);
std::string coverage_table(const SymbolResult& result);
std::string worst_trades(const SymbolResult& result);

}  // namespace toto::backtest
