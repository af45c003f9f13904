#include "io/series_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "io/json.h"
#include "io/series_grid.h"
#include "io/series_jsonl.h"

namespace toto::io {
namespace {

// What happened to some series of a file, told in one warning whatever their number.
class Tally {
 public:
  void add(std::string_view id, std::size_t count, std::string detail = {}) {
    if (num_series_++ == 0) {
      first_id_ = id;
      detail_ = std::move(detail);
    }
    count_ += count;
  }
  bool any() const { return num_series_ > 0; }
  std::size_t count() const { return count_; }
  const std::string& detail() const { return detail_; }  // of the first
  // ` (series "a" and 2 more)`; nothing where the series has no id of its own.
  std::string of() const {
    if (first_id_.empty()) return {};
    if (num_series_ == 1) return fmt::format(" (series {})", quoted(first_id_));
    return fmt::format(" (series {} and {} more)", quoted(first_id_), num_series_ - 1);
  }

 private:
  std::size_t num_series_ = 0;
  std::size_t count_ = 0;
  std::string first_id_;
  std::string detail_;
};

// Turns rows into series on a grid, and remembers what to warn of.
class SeriesBuilder {
 public:
  SeriesBuilder(std::string file, std::string_view frequency) : file_(std::move(file)) {
    if (!frequency.empty()) wanted_ = parse_frequency(frequency, "the frequency");
  }

  // The grid of rows that share their times. `id` is empty if that is the whole file.
  Grid make_grid(std::vector<Ticks> times, const TimeStyle& style, const std::string& id) {
    const std::size_t num_rows = times.size();
    const std::string what = id.empty() ? file_ : fmt::format("series {} of {}", quoted(id), file_);
    if (wanted_ && style.steps) {
      fail(ErrorCode::invalid_argument,
           "the frequency {} does not fit {}: its times are step numbers, expected dates",
           name_of(*wanted_, false), what);
    }
    Grid grid = wanted_ ? impose_grid(std::move(times), *wanted_, style, what)
                        : infer_grid(std::move(times), style.steps);
    if (grid.frequency.unit == Frequency::Unit::unknown) unknown_.add(id, 1);
    if (grid.irregular) irregular_.add(id, 1, name_of(grid.frequency, style.steps));
    if (grid.num_closed_up > 0) {
      closed_up_.add(id, grid.num_closed_up, format_time(grid.first_closed_up, style));
    }
    if (grid.num_moved > 0) moved_.add(id, grid.num_moved);
    if (grid.times.size() > num_rows) {
      std::size_t first = 0;  // the first point without a row
      while (grid.positions[first] == first) ++first;
      absent_.add(id, grid.times.size() - num_rows, format_time(grid.times[first], style));
    }
    return grid;
  }

  // A line of JSON has only its first time, so its frequency must be given.
  std::shared_ptr<const TimeAxis> make_axis(const JsonSeries& line, const TimeStyle& style) {
    TimeAxis axis{.style = style, .frequency = wanted_.value_or(line.frequency)};
    if (axis.frequency.unit == Frequency::Unit::unknown) {
      unknown_.add(line.id, 1);
      return std::make_shared<const TimeAxis>(std::move(axis));
    }
    if (style.steps) {
      fail(ErrorCode::corrupt_file,
           "{}: line {}: \"start\" is a step number, expected a date as the frequency is {}", file_,
           line.line, name_of(axis.frequency, false));
    }
    axis.frequency = anchored(axis.frequency, {&line.start, 1});
    try {
      for (std::size_t i = 0; i < line.values.size(); ++i) {
        axis.times.push_back(advance(axis.frequency, line.start, static_cast<std::int64_t>(i)));
      }
    } catch (const Error& error) {
      fail(ErrorCode::corrupt_file, "{}: line {}: {}", file_, line.line, error.what());
    }
    return std::make_shared<const TimeAxis>(std::move(axis));
  }

  void add(std::string id, std::shared_ptr<const TimeAxis> axis,
           std::span<const std::size_t> positions, std::vector<float> rows, std::size_t column,
           const std::string& where) {
    if (!ids_.insert(id).second) {
      fail(ErrorCode::corrupt_file, "{}: the series {} stands twice in the file, expected it once",
           where, quoted(id));
    }
    std::vector<float> values = std::move(rows);
    if (!positions.empty()) {
      std::vector<float> points(axis->times.size(), std::numeric_limits<float>::quiet_NaN());
      for (std::size_t i = 0; i < values.size(); ++i) points[positions[i]] = values[i];
      values = std::move(points);
    }
    const auto first =
        std::find_if(values.begin(), values.end(), [](float value) { return !std::isnan(value); });
    if (first == values.end()) {
      fail(ErrorCode::corrupt_file, "{}: the series {} has no value, expected at least one", where,
           quoted(id));
    }
    if (first != values.begin()) {
      leading_.add(id, static_cast<std::size_t>(first - values.begin()));
      values.erase(values.begin(), first);
    }
    series_.push_back({.id = std::move(id),
                       .values = std::move(values),
                       .axis = std::move(axis),
                       .column = column});
  }

  InputData finish(std::vector<std::string> warnings) {
    const auto warn = [&](const Tally& tally, const std::string& text) {
      if (tally.any()) warnings.push_back(fmt::format("{}: {}{}", file_, text, tally.of()));
    };
    warn(absent_, fmt::format("absent timestamps are inserted as missing: {}, the first is {}",
                              absent_.count(), absent_.detail()));
    warn(closed_up_,
         fmt::format("absent weekdays are closed up as if they were holidays: {} in gaps longer "
                     "than a week, the first is {}; --freq B inserts them as missing",
                     closed_up_.count(), closed_up_.detail()));
    warn(moved_,
         fmt::format("times beside the grid are moved to its nearest step: {}", moved_.count()));
    warn(irregular_,
         fmt::format("the times are not regular: the values are used one after another, "
                     "forecast steps are the median distance {} apart",
                     irregular_.detail()));
    warn(unknown_,
         "the frequency is unknown: forecast times are step numbers, --freq makes them "
         "dates");
    warn(leading_, fmt::format("leading missing values are dropped: {}", leading_.count()));
    InputData data;
    data.name = file_;
    data.series = std::move(series_);
    data.warnings = std::move(warnings);
    return data;
  }

 private:
  std::string file_;
  std::optional<Frequency> wanted_;
  std::vector<InputSeries> series_;
  std::unordered_set<std::string> ids_;
  Tally absent_, closed_up_, moved_, irregular_, unknown_, leading_;
};

// ", D" when all series have one frequency.
std::string common_frequency(const std::vector<InputSeries>& series) {
  const TimeAxis& first = *series.front().axis;
  const bool common = std::all_of(series.begin(), series.end(), [&](const InputSeries& other) {
    return other.axis->frequency == first.frequency;
  });
  if (!common || first.frequency.unit == Frequency::Unit::unknown) return {};
  return ", " + name_of(first.frequency, first.style.steps);
}

std::string described(const SeriesTable& table, const std::vector<InputSeries>& series) {
  const bool ohlcv = table.format == InputFormat::csv_ohlcv;
  std::string text = fmt::format("{} CSV: time column {}", ohlcv ? "OHLCV" : name_of(table.format),
                                 quoted(table.time_name));
  if (!table.id_name.empty()) text += fmt::format(", id column {}", quoted(table.id_name));
  if (ohlcv) {
    for (const std::string& column : table.columns) text += fmt::format(", {}", quoted(column));
  }
  return text + fmt::format(", {} series{}", series.size(), common_frequency(series));
}

InputData read_csv(TextInput& input, const ReadOptions& options) {
  SeriesBuilder builder(input.name(), options.frequency);
  SeriesTable table = read_table(input, {.format = options.format,
                                         .columns = options.columns,
                                         .also = options.also,
                                         .whole_bars = options.whole_bars});
  for (TableRows& rows : table.groups) {
    Grid grid = builder.make_grid(std::move(rows.times), table.style, rows.id);
    const auto axis = std::make_shared<const TimeAxis>(TimeAxis{
        .style = table.style, .frequency = grid.frequency, .times = std::move(grid.times)});
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const bool by_column = rows.id.empty();
      std::string id = by_column                   ? table.columns[i]
                       : table.columns.size() == 1 ? rows.id
                                                   : rows.id + "." + table.columns[i];
      builder.add(std::move(id), axis, grid.positions, std::move(rows.values[i]), i,
                  place(input.name(), by_column ? table.header_line : rows.first_line,
                        table.column_numbers[i]));
    }
  }
  InputData data = builder.finish(std::move(table.warnings));
  data.format = table.format;
  data.time_name = table.time_name;
  data.description = described(table, data.series);
  data.columns = std::move(table.columns);
  return data;
}

InputData read_jsonl(TextInput& input, const ReadOptions& options) {
  if (!options.columns.empty()) {
    fail(ErrorCode::invalid_argument,
         "{} is JSON lines, which have no columns to choose; expected a CSV with --columns",
         input.name());
  }
  SeriesBuilder builder(input.name(), options.frequency);
  JsonLines lines = read_json_lines(input);
  for (JsonSeries& line : lines.series) {
    auto axis = builder.make_axis(line, lines.style);
    builder.add(std::move(line.id), std::move(axis), {}, std::move(line.values), 0,
                fmt::format("{}: line {}", input.name(), line.line));
  }
  InputData data = builder.finish(std::move(lines.warnings));
  data.format = InputFormat::jsonl;
  data.columns = {"target"};
  data.description = fmt::format("GluonTS JSON lines: {} series{}", data.series.size(),
                                 common_frequency(data.series));
  return data;
}

}  // namespace

InputData read_series(ByteSource& source, const std::string& name, const ReadOptions& options) {
  TextInput input(source, name);
  InputFormat format = options.format;
  if (format == InputFormat::automatic && looks_like_json(input.head())) {
    format = InputFormat::jsonl;
  }
  return format == InputFormat::jsonl ? read_jsonl(input, options) : read_csv(input, options);
}

InputData read_series(const std::string& path, const ReadOptions& options) {
  const std::unique_ptr<ByteSource> source = open_source(path);
  return read_series(*source, path == "-" ? "standard input" : path, options);
}

TimeAxis future_axis(const InputSeries& series, int horizon) {
  const TimeAxis& past = *series.axis;
  TimeAxis future{.style = past.style, .frequency = past.frequency};
  const bool unknown = past.frequency.unit == Frequency::Unit::unknown;
  if (unknown) future.style = {.steps = true};
  for (int step = 1; step <= horizon; ++step) {
    future.times.push_back(unknown ? step : advance(past.frequency, past.times.back(), step));
    widen(future.style, future.times.back());
  }
  return future;
}

std::vector<std::string> future_timestamps(const InputSeries& series, int horizon) {
  const TimeAxis future = future_axis(series, horizon);
  std::vector<std::string> texts;
  texts.reserve(future.times.size());
  for (const Ticks time : future.times) texts.push_back(format_time(time, future.style));
  return texts;
}

}  // namespace toto::io
