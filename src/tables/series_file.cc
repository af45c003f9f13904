#include "tables/series_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/series_columns.h"
#include "tables/series_grid.h"
#include "tables/series_jsonl.h"

namespace toto::tables {
namespace {

// Counts one kind of finding over the series of a file, for one warning about all of them.
class Tally {
 public:
  void add(std::string_view id, std::size_t count, Ticks first_time = 0) {
    if (num_series_++ == 0) {
      first_id_ = id;
      first_time_ = first_time;
    }
    count_ += count;
  }
  bool any() const { return num_series_ > 0; }
  std::size_t count() const { return count_; }
  Ticks first_time() const { return first_time_; }
  // ` (series "a" and 2 more)`; empty if the series has no id.
  std::string of() const {
    if (first_id_.empty()) return {};
    if (num_series_ == 1) return fmt::format(" (series {})", quoted(first_id_));
    return fmt::format(" (series {} and {} more)", quoted(first_id_), num_series_ - 1);
  }

 private:
  std::size_t num_series_ = 0;
  std::size_t count_ = 0;
  std::string first_id_;
  Ticks first_time_ = 0;
};

// Turns rows into series on a regular grid and collects warnings and the description of the file.
class SeriesBuilder {
 public:
  SeriesBuilder(std::string file, std::string_view frequency) : file_(std::move(file)) {
    if (!frequency.empty()) wanted_ = parse_frequency(frequency, "the frequency");
  }

  // The grid of rows that share their times. `id` is empty for a file without ids.
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
    num_rows_ += num_rows;
    ++num_groups_;
    if (grid.frequency.unit == Frequency::Unit::unknown) unknown_.add(id, 1);
    if (grid.irregular) {
      if (!irregular_.any()) median_step_ = name_of(grid.frequency, style.steps);
      irregular_.add(id, 1);
    }
    if (grid.num_closed_up > 0) closed_up_.add(id, grid.num_closed_up, grid.first_closed_up);
    if (grid.num_moved > 0) moved_.add(id, grid.num_moved);
    if (grid.times.size() > num_rows) {
      std::size_t first = 0;  // the first point without a row
      while (grid.positions[first] == first) ++first;
      absent_.add(id, grid.times.size() - num_rows, grid.times[first]);
    }
    return grid;
  }

  // A line of JSON holds only its first time: later ones follow from the frequency.
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

  // Places the rows on the grid, drops leading missing values and collects facts for the
  // description.
  InputSeries make(std::string id, std::shared_ptr<const TimeAxis> axis,
                   std::span<const std::size_t> positions, std::vector<float> rows,
                   std::size_t column, const std::string& where) {
    if (!ids_.insert(id).second) {
      fail(ErrorCode::corrupt_file, "{}: the series {} appears twice in the file, expected it once",
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
    if (++num_series_ == 1) {
      frequency_ = axis->frequency;
    } else if (!(axis->frequency == frequency_)) {
      one_frequency_ = false;
    }
    shortest_ = std::min(shortest_, values.size());
    longest_ = std::max(longest_, values.size());
    if (!axis->times.empty()) {
      first_time_ = std::min(first_time_, axis->times[axis->times.size() - values.size()]);
      last_time_ = std::max(last_time_, axis->times.back());
    }
    return {.id = std::move(id),
            .values = std::move(values),
            .axis = std::move(axis),
            .column = column};
  }

  // Everything about the file except its series.
  InputData finish(std::vector<std::string> warnings, const TimeStyle& style, InputFormat format,
                   std::span<const std::string> columns) {
    const auto warn = [&](const Tally& tally, const std::string& text) {
      if (tally.any()) warnings.push_back(fmt::format("{}: {}{}", file_, text, tally.of()));
    };
    warn(absent_, fmt::format("absent timestamps are inserted as missing: {}, the first is {}",
                              absent_.count(), format_time(absent_.first_time(), style)));
    warn(closed_up_,
         fmt::format("absent weekdays are treated as holidays: {} in gaps longer than a week, the "
                     "first is {}; --freq B inserts them as missing",
                     closed_up_.count(), format_time(closed_up_.first_time(), style)));
    warn(moved_,
         fmt::format("times off the grid are moved to its nearest step: {}", moved_.count()));
    warn(irregular_,
         fmt::format("the times are not regular: the values are used one after another, "
                     "forecast steps are the median distance {} apart",
                     median_step_));
    warn(unknown_,
         "the frequency is unknown: forecast times are step numbers, --freq makes them dates");
    warn(leading_, fmt::format("leading missing values are dropped: {}", leading_.count()));
    InputData data;
    data.name = file_;
    data.format = format;
    data.description = description(style, format, columns);
    data.style = style;
    data.num_series = num_series_;
    data.warnings = std::move(warnings);
    return data;
  }

 private:
  // "1254 daily bars (business days), 2021-08-06 to 2026-08-05; forecasting close".
  std::string description(const TimeStyle& style, InputFormat format,
                          std::span<const std::string> columns) const {
    const bool known = one_frequency_ && frequency_.unit != Frequency::Unit::unknown;
    const std::string kind = irregular_.any()        ? "irregular "
                             : known && !style.steps ? adjective_of(frequency_) + " "
                                                     : "";
    std::string text;
    if (format == InputFormat::csv_ohlcv) {
      text = counted(static_cast<std::int64_t>(num_rows_), kind + "bar");
      if (num_groups_ > 1) text += fmt::format(" of {} symbols", num_groups_);
    } else {
      text = fmt::format("{} {}series of {}{}", num_series_, kind,
                         shortest_ < longest_ ? "up to " : "",
                         counted(static_cast<std::int64_t>(longest_), "point"));
    }
    if (known && frequency_.unit == Frequency::Unit::weekday) text += " (business days)";
    if (first_time_ <= last_time_) {
      text += fmt::format(", {}{} to {}", style.steps ? "steps " : "",
                          format_time(first_time_, style), format_time(last_time_, style));
    }
    if (format == InputFormat::csv_ohlcv) {
      text +=
          fmt::format("; forecasting {}", one_line(fmt::format("{}", fmt::join(columns, ", "))));
    }
    return text;
  }

  std::string file_;
  std::optional<Frequency> wanted_;
  std::unordered_set<std::string> ids_;
  std::size_t num_series_ = 0;
  std::size_t num_groups_ = 0, num_rows_ = 0;  // grids made, and rows read for them
  std::size_t shortest_ = std::numeric_limits<std::size_t>::max(), longest_ = 0;  // values
  Ticks first_time_ = std::numeric_limits<Ticks>::max();
  Ticks last_time_ = std::numeric_limits<Ticks>::min();
  Frequency frequency_;  // of the first
  bool one_frequency_ = true;
  std::string median_step_;  // of the first irregular one
  Tally absent_, closed_up_, moved_, irregular_, unknown_, leading_;
};

// A format of input files. To add one, add a row to kFormats.
struct FormatRow {
  InputFormat format;
  std::string_view name;  // for --format
  bool (*recognise)(const io::TextInput& input);
  InputData (*read)(InputFormat format, io::TextInput& input, const ReadOptions& options);
  // See stream_series.
  std::optional<InputData> (*stream)(InputFormat format, io::TextInput& input,
                                     const ReadOptions& options, const TakeSeries& take,
                                     const std::optional<TimeStyle>& style);
};

// The series of one id, or of a whole table without ids.
std::vector<InputSeries> make_series(SeriesBuilder& builder, const std::string& file,
                                     const SeriesTable& table, const TimeStyle& style,
                                     TableRows rows) {
  Grid grid = builder.make_grid(std::move(rows.times), style, rows.id);
  const auto axis = std::make_shared<const TimeAxis>(
      TimeAxis{.style = style, .frequency = grid.frequency, .times = std::move(grid.times)});
  std::vector<InputSeries> series;
  series.reserve(table.columns.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool by_column = rows.id.empty();
    std::string id = by_column                   ? table.columns[i]
                     : table.columns.size() == 1 ? rows.id
                                                 : rows.id + "." + table.columns[i];
    series.push_back(builder.make(
        std::move(id), axis, grid.positions, std::move(rows.values[i]), i,
        io::place(file, by_column ? table.header_line : rows.first_line, table.column_numbers[i])));
  }
  return series;
}

TableOptions table_options(InputFormat format, const ReadOptions& options) {
  return {.format = format,
          .columns = options.columns,
          .also = options.also,
          .whole_bars = options.whole_bars};
}

InputData finish_csv(SeriesBuilder& builder, SeriesTable table) {
  InputData data =
      builder.finish(std::move(table.warnings), table.style, table.format, table.columns);
  data.time_name = std::move(table.time_name);
  data.columns = std::move(table.columns);
  return data;
}

InputData read_csv(InputFormat format, io::TextInput& input, const ReadOptions& options) {
  SeriesBuilder builder(input.name(), options.frequency);
  SeriesTable table = read_table(input, table_options(format, options));
  std::vector<InputSeries> all;
  for (TableRows& rows : table.groups) {
    for (InputSeries& series :
         make_series(builder, input.name(), table, table.style, std::move(rows))) {
      all.push_back(std::move(series));
    }
  }
  InputData data = finish_csv(builder, std::move(table));
  data.series = std::move(all);
  return data;
}

// A series that cannot be built yet ends the streaming: read_csv() then decides with all rows at
// hand.
std::optional<InputData> stream_csv(InputFormat format, io::TextInput& input,
                                    const ReadOptions& options, const TakeSeries& take,
                                    const std::optional<TimeStyle>& style) {
  SeriesBuilder builder(input.name(), options.frequency);
  const auto take_rows = [&](const SeriesTable& table, TableRows rows) {
    std::vector<InputSeries> made;
    try {
      made =
          make_series(builder, input.name(), table, style.value_or(table.style), std::move(rows));
    } catch (const Error&) {
      return false;  // later rows may resolve the error; only read_series can tell
    }
    for (InputSeries& series : made) take(std::move(series));
    return true;
  };
  std::optional<SeriesTable> table = stream_table(input, table_options(format, options), take_rows);
  if (!table) return {};
  return finish_csv(builder, std::move(*table));
}

// Both readers of JSON lines: a line is a complete series, so streaming always works.
InputData take_jsonl(InputFormat format, io::TextInput& input, const ReadOptions& options,
                     const TakeSeries& take, const std::optional<TimeStyle>& style) {
  if (!options.columns.empty()) {
    fail(ErrorCode::invalid_argument,
         "{} is JSON lines, which have no columns to choose; expected a CSV with --columns",
         input.name());
  }
  SeriesBuilder builder(input.name(), options.frequency);
  const auto take_line = [&](JsonSeries line, const TimeStyle& so_far) {
    auto axis = builder.make_axis(line, style.value_or(so_far));
    take(builder.make(std::move(line.id), std::move(axis), {}, std::move(line.values), 0,
                      fmt::format("{}: line {}", input.name(), line.line)));
  };
  JsonLines lines = read_json_lines(input, take_line);
  InputData data = builder.finish(std::move(lines.warnings), lines.style, format, {});
  data.columns = {"target"};
  return data;
}

std::optional<InputData> stream_jsonl(InputFormat format, io::TextInput& input,
                                      const ReadOptions& options, const TakeSeries& take,
                                      const std::optional<TimeStyle>& style) {
  return take_jsonl(format, input, options, take, style);
}

InputData read_jsonl(InputFormat format, io::TextInput& input, const ReadOptions& options) {
  std::vector<InputSeries> all;
  const auto take = [&all](InputSeries series) { all.push_back(std::move(series)); };
  InputData data = take_jsonl(format, input, options, take, {});
  for (InputSeries& series : all) {  // later lines may need more digits: one style for all
    if (series.axis->style == data.style) continue;
    TimeAxis axis = *series.axis;
    axis.style = data.style;
    series.axis = std::make_shared<const TimeAxis>(std::move(axis));
  }
  data.series = std::move(all);
  return data;
}

// The column names, unless the header is longer than the 1 MB that are buffered: only a wide table
// has such a header.
std::vector<std::string> names_in(const io::TextInput& input) {
  constexpr std::size_t kCut = std::size_t{1} << 20;
  return input.head().size() < kCut ? header_names(input) : std::vector<std::string>();
}

// In the order in which they are tried; the last one accepts everything.
constexpr FormatRow kFormats[] = {
    {InputFormat::jsonl, "jsonl",
     [](const io::TextInput& input) { return looks_like_json(input.head()); }, read_jsonl,
     stream_jsonl},
    {InputFormat::csv_long, "long",
     [](const io::TextInput& input) { return is_long_header(names_in(input)); }, read_csv,
     stream_csv},
    {InputFormat::csv_ohlcv, "ohlcv",
     [](const io::TextInput& input) { return is_ohlcv_header(names_in(input)); }, read_csv,
     stream_csv},
    {InputFormat::csv_wide, "wide", [](const io::TextInput&) { return true; }, read_csv,
     stream_csv},
};

const FormatRow& row_of(InputFormat format) {
  return *std::ranges::find(kFormats, format, &FormatRow::format);
}

const FormatRow& row_for(const io::TextInput& input, InputFormat format) {
  if (format != InputFormat::automatic) return row_of(format);
  return *std::ranges::find_if(kFormats,
                               [&](const FormatRow& row) { return row.recognise(input); });
}

std::string name_of_source(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

constexpr std::string_view kAutomatic = "auto";

}  // namespace

std::string_view name_of(InputFormat format) noexcept {
  return format == InputFormat::automatic ? kAutomatic : row_of(format).name;
}

std::string input_format_names() {
  std::vector<std::string_view> names = {kAutomatic};
  for (const FormatRow& row : kFormats) names.push_back(row.name);
  return alternatives(names);
}

InputFormat parse_input_format(std::string_view name) {
  if (name == kAutomatic) return InputFormat::automatic;
  for (const FormatRow& row : kFormats) {
    if (row.name == name) return row.format;
  }
  fail(ErrorCode::invalid_argument, "the input format is {}, expected {}", quoted(name),
       input_format_names());
}

InputData read_series(io::ByteSource& source, const std::string& name, const ReadOptions& options) {
  io::TextInput input(source, name);
  const FormatRow& row = row_for(input, options.format);
  return row.read(row.format, input, options);
}

InputData read_series(const std::string& path, const ReadOptions& options) {
  const std::unique_ptr<io::ByteSource> source = io::open_source(path);
  return read_series(*source, name_of_source(path), options);
}

std::optional<InputData> stream_series(io::ByteSource& source, const std::string& name,
                                       const ReadOptions& options, const TakeSeries& take,
                                       const std::optional<TimeStyle>& style) {
  io::TextInput input(source, name);
  const FormatRow& row = row_for(input, options.format);
  return row.stream(row.format, input, options, take, style);
}

std::optional<InputData> stream_series(const std::string& path, const ReadOptions& options,
                                       const TakeSeries& take,
                                       const std::optional<TimeStyle>& style) {
  const std::unique_ptr<io::ByteSource> source = io::open_source(path);
  return stream_series(*source, name_of_source(path), options, take, style);
}

void check_last_time(const InputSeries& series, int horizon) {
  const TimeAxis& past = *series.axis;
  if (past.frequency.unit == Frequency::Unit::unknown) return;
  std::ignore = advance(past.frequency, past.times.back(), horizon);
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

}  // namespace toto::tables
