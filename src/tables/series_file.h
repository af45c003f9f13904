// Series in: every input `toto forecast` takes, brought onto a regular grid and ready for the
// engine.
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

// Points in time, and how to write them. Those of a file's columns share one.
struct TimeAxis {
  TimeStyle style = {};
  Frequency frequency = {};       // unknown: a single row, or JSON lines without "freq"
  std::vector<Ticks> times = {};  // empty where only the first one is known
};

struct InputSeries {
  std::string id = {};
  std::vector<float> values = {};  // oldest first; NaN is missing; the first one is not missing
  // Ends where the values end, and may begin earlier: leading missing values have been dropped.
  std::shared_ptr<const TimeAxis> axis = {};
  std::size_t column = 0;  // the one it was read from, in InputData::columns

  // Of values[i]; not for an axis without times.
  Ticks time(std::size_t i) const { return axis->times[axis->times.size() - values.size() + i]; }
};

struct InputData {
  std::string name = {};                        // of the file, for messages
  InputFormat format = InputFormat::automatic;  // what the input was found to be
  std::string description = {};                 // `wide CSV: time column "date", 3 series, D`
  std::string time_name = {};                   // of the time column; empty for JSON lines
  std::vector<std::string> columns = {};        // with values; "target" for JSON lines
  TimeStyle style = {};                         // of all its times
  std::size_t num_series = 0;                   // also where `series` does not hold them
  std::vector<InputSeries> series = {};    // in the order of the file, or of the columns asked for
  std::vector<std::string> warnings = {};  // one sentence each
};

struct ReadOptions {
  InputFormat format = InputFormat::automatic;
  std::vector<std::string> columns = {};  // of a CSV; see TableOptions
  std::vector<std::string> also = {};     // likewise: columns whose future is known
  bool whole_bars = false;                // likewise: of bars all four prices, not close alone
  std::string frequency = {};             // overrides what the times tell; see parse_frequency
};

// `path` "-" is standard input. The id of a series is its column (wide, OHLCV), its `unique_id`,
// `item_id` or `symbol` (long, bars of several symbols, JSON lines), or "ID.column" where a file
// has ids and several columns are asked for. Absent times of a regular series become missing
// values; absent weekdays of a business-day series only where the frequency is given. Errors:
// not_found; corrupt_file with file, line and column; invalid_argument for an option that does not
// fit the file.
InputData read_series(const std::string& path, const ReadOptions& options);
InputData read_series(io::ByteSource& source, const std::string& name, const ReadOptions& options);

// The same for files too large to be held: each series is handed over as soon as it has been read,
// which of a wide table is at the end. Returns all but the series; nothing if the rows of a long
// table's ids are mixed, or if something seems wrong with one of its series: only read_series can
// tell, and what was handed over is void. Times carry the style of those read so far, or `style`,
// which an earlier reading has found.
using TakeSeries = std::function<void(InputSeries series)>;
std::optional<InputData> stream_series(const std::string& path, const ReadOptions& options,
                                       const TakeSeries& take,
                                       const std::optional<TimeStyle>& style = {});
std::optional<InputData> stream_series(io::ByteSource& source, const std::string& name,
                                       const ReadOptions& options, const TakeSeries& take,
                                       const std::optional<TimeStyle>& style = {});

// The `horizon` steps after a series, in the style of its own times, wide enough for all of them.
// Without a frequency these are the step numbers 1, 2, ...
TimeAxis future_axis(const InputSeries& series, int horizon);
std::vector<std::string> future_timestamps(const InputSeries& series, int horizon);

// Columns whose future is known, from a CSV with the time column of the input.
struct KnownFuture {
  std::vector<std::string> names = {};  // each the id of an input series
  std::vector<float> values = {};       // [name][step], all finite
};
// Rows before the forecast are allowed. Refused: a column the input does not have (case matters
// only if it must), a step of the horizon without a row or with a missing value.
KnownFuture read_known_future(io::TextInput& text, const InputData& input, int horizon);

// Error(corrupt_file) unless the series at these positions have the same times as far as they go
// back: those of variates of one series.
void check_same_times(const InputData& input, std::span<const std::size_t> positions);

// All series of the input as variates of one, those with a known future last.
struct JoinedSeries {
  Series series = {};                   // at most `max_context` points; NaN before a variate begins
  std::vector<std::size_t> order = {};  // variate -> position in InputData::series
};
// Error(corrupt_file) unless check_same_times holds for all of them.
JoinedSeries join_variates(const InputData& input, const KnownFuture& future,
                           std::size_t max_context, const std::string& id);

}  // namespace toto::tables
