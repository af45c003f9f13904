// Reads every input format of `toto forecast` into series on a regular time grid.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv.h"
#include "tables/series_frequency.h"
#include "tables/series_table.h"
#include "tables/timestamps.h"
#include "toto/toto.h"

namespace toto::tables {

std::string_view name_of(InputFormat format) noexcept;  // "auto", "long", ...
InputFormat parse_input_format(std::string_view name);  // Error(invalid_argument) lists them
std::string input_format_names();                       // "auto, jsonl, long, ohlcv or wide"

// Points in time and how to print them. The columns of a file share one axis.
struct TimeAxis {
  TimeStyle style = {};
  Frequency frequency = {};       // unknown: a single row, or JSON lines without "freq"
  std::vector<Ticks> times = {};  // empty where only the first one is known
};

struct InputSeries {
  std::string id = {};
  std::vector<float> values = {};  // oldest first; NaN is missing; the first one is not missing
  // Ends with the values and may begin before them: leading missing values have been dropped.
  std::shared_ptr<const TimeAxis> axis = {};
  std::size_t column = 0;  // index in InputData::columns

  // The time of values[i]. The axis must have times.
  Ticks time(std::size_t i) const { return axis->times[axis->times.size() - values.size() + i]; }
};

struct InputData {
  std::string name = {};                        // of the file, for messages
  InputFormat format = InputFormat::automatic;  // as detected
  std::string description = {};           // "3 daily series of 90 points, 2024-01-01 to 2024-03-30"
  std::string time_name = {};             // of the time column; empty for JSON lines
  std::vector<std::string> columns = {};  // with values; "target" for JSON lines
  TimeStyle style = {};                   // of all its times
  std::size_t num_series = 0;             // set when streaming as well
  std::vector<InputSeries> series = {};   // in file order, or in the order of ReadOptions::columns
  std::vector<std::string> warnings = {};  // one sentence each
};

struct ReadOptions {
  InputFormat format = InputFormat::automatic;
  std::vector<std::string> columns = {};  // of a CSV; see TableOptions
  std::vector<std::string> also = {};     // see TableOptions: columns whose future is known
  bool whole_bars = false;                // see TableOptions: read all four prices of a bar
  std::string frequency = {};             // overrides the inferred one; see parse_frequency
};

// `path` "-" is standard input. The id of a series is its column (wide, OHLCV), its `unique_id`,
// `item_id` or `symbol` (long, bars of several symbols, JSON lines), or "ID.column" if a file has
// ids and several columns are read. Absent times of a regular series become missing values; absent
// weekdays of a business-day series only if the frequency is given. Errors: not_found; corrupt_file
// with file, line and column; invalid_argument for an option that does not fit the file.
InputData read_series(const std::string& path, const ReadOptions& options);
InputData read_series(io::ByteSource& source, const std::string& name, const ReadOptions& options);

// The same for files larger than memory: `take` receives each series as soon as it is complete (for
// a wide table that is at the end). Returns everything but the series. Returns nothing if the rows
// of several ids are interleaved or a series looks wrong: the caller must then discard what it took
// and call read_series. Times carry the style of those read so far, or `style` from an earlier
// pass.
using TakeSeries = std::function<void(InputSeries series)>;
std::optional<InputData> stream_series(const std::string& path, const ReadOptions& options,
                                       const TakeSeries& take,
                                       const std::optional<TimeStyle>& style = {});
std::optional<InputData> stream_series(io::ByteSource& source, const std::string& name,
                                       const ReadOptions& options, const TakeSeries& take,
                                       const std::optional<TimeStyle>& style = {});

// The `horizon` steps after a series, in the style of its own times. Without a frequency these are
// Error(corrupt_file) if a forecast of this many steps would pass the year 9999.
void check_last_time(const InputSeries& series, int horizon);
// the step numbers 1, 2, ...
TimeAxis future_axis(const InputSeries& series, int horizon);
std::vector<std::string> future_timestamps(const InputSeries& series, int horizon);

// Columns with known future values, from a CSV that has the time column of the input.
struct KnownFuture {
  std::vector<std::string> names = {};  // each the id of an input series
  std::vector<float> values = {};       // [name][step], all finite
};
// Rows before the forecast are allowed. Refused: a column that the input does not have (compared
// case-insensitively unless that is ambiguous), a step of the horizon without a row or value.
KnownFuture read_known_future(io::TextInput& text, const InputData& input, int horizon);

// Error(corrupt_file) unless the series at these positions share their times as far as both go
// back, which variates of one series must.
void check_same_times(const InputData& input, std::span<const std::size_t> positions);

// All series of the input as variates of one; those with a known future come last.
struct JoinedSeries {
  Series series = {};                   // at most `max_context` points; NaN before a variate begins
  std::vector<std::size_t> order = {};  // variate -> position in InputData::series
};
// Error(corrupt_file) unless check_same_times() passes for all of them.
JoinedSeries join_variates(const InputData& input, const KnownFuture& future,
                           std::size_t max_context, const std::string& id);

}  // namespace toto::tables
