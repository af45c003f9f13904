// GluonTS JSON lines: one object a line with "start", "target", and optionally "item_id", "freq".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv.h"
#include "tables/series_frequency.h"

namespace toto::tables {

// A series of a line, or one row of its two-dimensional target.
struct JsonSeries {
  std::string id = {};  // "item_id", ".0", ".1", ... behind it for two dimensions; else "line_7"
  std::int64_t line = 0;
  Ticks start = 0;
  Frequency frequency = {};        // unknown if the line has no "freq"
  std::vector<float> values = {};  // null and the spellings of a missing cell are NaN
};

struct JsonLines {
  TimeStyle style = {};
  std::size_t num_series = 0;
  std::vector<std::string> warnings = {};
};

// Whether a text that begins like this is JSON: no CSV header begins with a brace, or with a
// bracket and then a brace.
bool looks_like_json(std::string_view head);

// Hands over each series as it is read, with the style of the times so far. Error(corrupt_file)
// names file and line. A line may have 64 MB.
using TakeJsonSeries = std::function<void(JsonSeries series, const TimeStyle& style)>;
JsonLines read_json_lines(io::TextInput& input, const TakeJsonSeries& take);

}  // namespace toto::tables
