// The table on the terminal: few digits, few columns, aligned decimal points.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "tables/forecast_file.h"

namespace toto::tables {
namespace {

constexpr std::size_t kMaxTableSeries = 20;
constexpr std::size_t kMaxTableSteps = 20;
constexpr std::size_t kLastSteps = 4;  // shown at the end of a long horizon

// Positions of the lowest level, the one nearest to the median and the highest.
std::vector<std::size_t> shown_levels(std::span<const double> levels) {
  if (levels.empty()) return {};
  const auto position = [&](auto found) {
    return static_cast<std::size_t>(found - levels.begin());
  };
  const auto [low, high] = std::minmax_element(levels.begin(), levels.end());
  const auto middle = std::min_element(levels.begin(), levels.end(), [](double a, double b) {
    return std::abs(a - 0.5) < std::abs(b - 0.5);
  });
  std::vector<std::size_t> shown;
  for (const std::size_t level : {position(low), position(middle), position(high)}) {
    if (std::find(shown.begin(), shown.end(), level) == shown.end()) shown.push_back(level);
  }
  return shown;
}

using TableRow = std::vector<std::string>;

// A column of numbers that share one format.
struct TableColumn {
  std::string name;
  std::vector<float> values;  // of the steps shown

  float largest() const {
    float most = 0;
    for (const float value : values) {
      if (std::isfinite(value)) most = std::max(most, std::abs(value));
    }
    return most;
  }
};

// Whether fixed notation suits the column: it would print 39 digits for 1e38 and zeros for 1e-9.
bool is_plain(float largest) { return largest == 0 || (largest >= 1e-4F && largest < 1e15F); }

// Decimals that give the largest value six digits, but at least two (cents).
int plain_decimals(float largest) {
  constexpr int kDigits = 6, kCents = 2;
  const int exponent = largest == 0 ? 0 : static_cast<int>(std::floor(std::log10(largest)));
  if (exponent > kDigits) return 0;
  return std::max(kDigits - 1 - exponent, kCents);
}

std::vector<std::string> cells_of(const TableColumn& column, int decimals) {
  const bool plain = is_plain(column.largest());
  std::vector<std::string> cells;
  for (const float value : column.values) {
    if (!std::isfinite(value)) {
      cells.emplace_back("-");
    } else if (plain) {
      std::string text = fmt::format("{:.{}f}", value, decimals);
      // Print "-0.00" without its sign.
      if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
      cells.push_back(std::move(text));
    } else {
      cells.push_back(fmt::format("{:.5e}", value));
    }
  }
  return cells;
}

// Drops decimals that are zero in every cell, so that counts print as whole numbers.
int needed_decimals(std::span<const TableColumn> columns, int decimals) {
  std::size_t needed = 0;
  for (const TableColumn& column : columns) {
    if (!is_plain(column.largest())) continue;
    for (const std::string& cell : cells_of(column, decimals)) {
      const std::size_t point = cell.find('.');
      if (point == std::string::npos) continue;
      needed = std::max(needed, cell.find_last_not_of('0') - point);
    }
  }
  return static_cast<int>(needed);
}

// Columns padded to their widest cell, without trailing blanks.
std::string aligned(std::span<const TableRow> rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    text += fmt::format("  {:<{}}", row[0], widths[0]);  // the time, left; numbers, right
    for (std::size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:>{}}", row[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

// Positions of the steps a table shows: all, or the first and the last few.
std::vector<std::size_t> shown_steps(std::size_t horizon) {
  std::vector<std::size_t> steps(std::min(horizon, kMaxTableSteps));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool last = horizon > kMaxTableSteps && i >= kMaxTableSteps - kLastSteps;
    steps[i] = last ? horizon - (kMaxTableSteps - i) : i;
  }
  return steps;
}

std::vector<TableColumn> table_columns(const ForecastEntry& entry, const ForecastHeader& header,
                                       std::span<const std::size_t> steps) {
  std::vector<TableColumn> columns;
  const auto add = [&](std::string name, std::span<const float> values) {
    TableColumn& column = columns.emplace_back(TableColumn{.name = std::move(name), .values = {}});
    for (const std::size_t step : steps) column.values.push_back(values[step]);
  };
  add("mean", entry.mean);
  if (!entry.point.empty() && !header.point_name.empty()) add(header.point_name, entry.point);
  for (const std::size_t level : shown_levels(header.quantiles)) {
    add(quantile_name(header.quantiles[level]), entry.quantiles[level]);
  }
  return columns;
}

// All plain columns share their decimals, so that decimal points align across the table.
std::string entry_table(const ForecastEntry& entry, const ForecastHeader& header) {
  const std::size_t horizon = entry.mean.size();
  const std::vector<std::size_t> steps = shown_steps(horizon);
  const std::vector<TableColumn> columns = table_columns(entry, header, steps);
  float largest = 0;  // of the columns that share their decimals
  for (const TableColumn& column : columns) {
    if (is_plain(column.largest())) largest = std::max(largest, column.largest());
  }
  const int decimals = needed_decimals(columns, plain_decimals(largest));

  std::vector<TableRow> rows(steps.size() + 1);
  rows[0].push_back("ds");
  for (std::size_t i = 0; i < steps.size(); ++i) rows[i + 1].push_back(entry.timestamps[steps[i]]);
  for (const TableColumn& column : columns) {
    rows[0].push_back(column.name);
    std::vector<std::string> cells = cells_of(column, decimals);
    for (std::size_t i = 0; i < cells.size(); ++i) rows[i + 1].push_back(std::move(cells[i]));
  }
  const bool cut = steps.size() < horizon;
  if (cut) {
    const auto gap = rows.end() - static_cast<std::ptrdiff_t>(kLastSteps);
    rows.insert(gap, TableRow(columns.size() + 1, "..."));
  }
  const std::string before = header.heading.empty() || equal_ignoring_case(header.heading, entry.id)
                                 ? std::string()
                                 : header.heading + " ";
  return fmt::format("{}: {} after {}{}\n", one_line(before + std::string(entry.id)),
                     counted(static_cast<std::int64_t>(horizon), "step"),
                     counted(entry.context_length, "value"),
                     cut ? fmt::format("; {} steps are not shown", horizon - steps.size()) : "") +
         aligned(rows);
}

// Prints the first kMaxTableSeries series and counts the others.
class TableWriter final : public ForecastWriter {
 public:
  TableWriter(ForecastHeader header, TextSink sink)
      : header_(std::move(header)), sink_(std::move(sink)) {}
  void add(const ForecastEntry& entry) override {
    if (num_series_++ >= kMaxTableSeries) return;
    if (num_series_ > 1) sink_("\n");
    sink_(entry_table(entry, header_));
  }
  void finish(const Timings&) override {
    if (num_series_ <= kMaxTableSeries) return;
    sink_(fmt::format("\n{} more series are not shown; --output FILE writes them all\n",
                      num_series_ - kMaxTableSeries));
  }

 private:
  ForecastHeader header_;
  TextSink sink_;
  std::size_t num_series_ = 0;
};

}  // namespace

std::unique_ptr<ForecastWriter> make_table_writer(ForecastHeader header, TextSink sink) {
  return std::make_unique<TableWriter>(std::move(header), std::move(sink));
}

}  // namespace toto::tables
