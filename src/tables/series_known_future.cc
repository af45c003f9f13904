// Known future values, and joining series as variates of one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/series_file.h"

namespace toto::tables {
namespace {

// Finds a series by id in constant time: a file may have 10^5 columns.
class SeriesIndex {
 public:
  explicit SeriesIndex(const std::vector<InputSeries>& series) {
    for (std::size_t i = 0; i < series.size(); ++i) {
      positions_.emplace(series[i].id, i);
      in_lower_case_.emplace(lower_case(series[i].id), i);
    }
  }
  std::size_t position(std::string_view id, std::string_view where) const {
    if (const auto found = positions_.find(id); found != positions_.end()) return found->second;
    const auto found = in_lower_case_.find(lower_case(id));
    if (found != in_lower_case_.end()) return found->second;
    fail(ErrorCode::corrupt_file,
         "{}: the known column {} is not a series of the input, expected its history there", where,
         quoted(id));
  }

 private:
  std::unordered_map<std::string_view, std::size_t> positions_;
  std::unordered_map<std::string, std::size_t> in_lower_case_;  // fallback for positions_
};

// Both series end at the same time and share their times as far as both go back.
bool same_times(const InputSeries& a, const InputSeries& b) {
  if (a.axis == b.axis) return true;
  if (!(a.axis->frequency == b.axis->frequency)) return false;
  const std::vector<Ticks>& x = a.axis->times;
  const std::vector<Ticks>& y = b.axis->times;
  if (x.empty() || y.empty()) return x.empty() && y.empty() && a.values.size() == b.values.size();
  const auto shared = static_cast<std::ptrdiff_t>(std::min(a.values.size(), b.values.size()));
  return std::equal(x.end() - shared, x.end(), y.end() - shared);
}

// Times are compared as written in the files, so both files must use the same zone.
void check_style(const TimeStyle& known, const TimeStyle& input, const std::string& where) {
  const bool zoned = known.zone != TimeStyle::Zone::none;
  if (known.steps == input.steps && zoned == (input.zone != TimeStyle::Zone::none) &&
      known.offset_minutes == input.offset_minutes) {
    return;
  }
  fail(ErrorCode::corrupt_file,
       "{}: the times are of another kind or zone than those of the input, expected the same",
       where);
}

// The row of each forecast step.
std::vector<std::size_t> match_rows(const TableRows& rows, const TimeAxis& future,
                                    const std::string& file) {
  std::vector<std::size_t> matches;
  std::size_t num_absent = 0;
  std::size_t first_absent = 0;
  for (std::size_t step = 0; step < future.times.size(); ++step) {
    const auto at = std::lower_bound(rows.times.begin(), rows.times.end(), future.times[step]);
    if (at != rows.times.end() && *at == future.times[step]) {
      matches.push_back(static_cast<std::size_t>(at - rows.times.begin()));
    } else if (num_absent++ == 0) {
      first_absent = step;
    }
  }
  if (num_absent > 0) {
    fail(ErrorCode::corrupt_file,
         "{}: {} of the {} forecast steps have no row, the first is {}, expected a row for each",
         file, num_absent, future.times.size(),
         format_time(future.times[first_absent], future.style));
  }
  return matches;
}

}  // namespace

// All known columns must belong to series that end at the same time, so one match of rows serves
// all.
KnownFuture read_known_future(io::TextInput& text, const InputData& input, int horizon) {
  const std::string& name = text.name();
  const SeriesTable table = read_table(
      text, {.format = InputFormat::csv_wide, .time_name = input.time_name, .keep_lines = true});
  const TableRows& rows = table.groups.front();
  const std::string header = io::place(name, table.header_line, 1);
  const SeriesIndex index(input.series);
  const InputSeries& first = input.series[index.position(table.columns.front(), header)];
  if (first.axis->frequency.unit == Frequency::Unit::unknown) {
    fail(
        ErrorCode::invalid_argument,
        "{} cannot be matched: the input's frequency is unknown, expected one; give it with --freq",
        name);
  }
  check_style(table.style, first.axis->style, io::place(name, rows.first_line, 1));
  const std::vector<std::size_t> matches = match_rows(rows, future_axis(first, horizon), name);

  KnownFuture known;
  std::vector<bool> is_known(input.series.size());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const std::size_t position = index.position(table.columns[column], header);
    const InputSeries& series = input.series[position];
    const std::string& id = series.id;
    if (is_known[position]) {
      fail(ErrorCode::corrupt_file, "{}: the series {} is known twice, expected one column for it",
           header, quoted(id));
    }
    if (!same_times(first, series)) {
      fail(ErrorCode::corrupt_file,
           "{}: the input's series {} and {} end at different times, expected the same end", header,
           quoted(first.id), quoted(id));
    }
    is_known[position] = true;
    known.names.push_back(id);
    for (const std::size_t row : matches) {
      const float value = rows.values[column][row];
      if (std::isnan(value)) {
        fail(ErrorCode::corrupt_file,
             "{} ({}): the value is missing, expected a number for every forecast step",
             io::place(name, rows.lines[row], table.column_numbers[column]), quoted(id));
      }
      known.values.push_back(value);
    }
  }
  return known;
}

void check_same_times(const InputData& input, std::span<const std::size_t> positions) {
  if (positions.empty()) return;
  const InputSeries& first = input.series[positions.front()];
  for (const std::size_t position : positions) {
    const InputSeries& series = input.series[position];
    if (same_times(first, series)) continue;
    fail(ErrorCode::corrupt_file,
         "{}{}the series {} has other times than {}, expected the same for variates of one series",
         input.name, input.name.empty() ? "" : ": ", quoted(series.id), quoted(first.id));
  }
}

JoinedSeries join_variates(const InputData& input, const KnownFuture& future,
                           std::size_t max_context, const std::string& id) {
  JoinedSeries joined;
  std::size_t length = 0;
  std::vector<bool> is_known(input.series.size());
  const SeriesIndex index(input.series);
  std::vector<std::size_t> known;
  for (const std::string& name : future.names) {
    known.push_back(index.position(name, "known future"));
    is_known[known.back()] = true;
  }
  for (std::size_t i = 0; i < input.series.size(); ++i) {
    const InputSeries& series = input.series[i];
    if (!is_known[i]) joined.order.push_back(i);
    length = std::max(length, std::min(series.values.size(), max_context));
  }
  joined.order.insert(joined.order.end(), known.begin(), known.end());
  check_same_times(input, joined.order);
  joined.series.id = id;
  joined.series.num_variates = static_cast<int>(input.series.size());
  joined.series.num_exogenous = static_cast<int>(future.names.size());
  joined.series.future_exogenous = future.values;
  joined.series.values.assign(length * input.series.size(),
                              std::numeric_limits<float>::quiet_NaN());
  // Variates end together, so each is copied to the end of its row.
  for (std::size_t variate = 0; variate < joined.order.size(); ++variate) {
    const std::vector<float>& values = input.series[joined.order[variate]].values;
    const auto used = static_cast<std::ptrdiff_t>(std::min(values.size(), length));
    const auto end =
        joined.series.values.begin() + static_cast<std::ptrdiff_t>((variate + 1) * length);
    std::copy(values.end() - used, values.end(), end - used);
  }
  return joined;
}

}  // namespace toto::tables
