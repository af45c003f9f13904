// GluonTS JSON lines: one object per line with "start", "target" and optionally "item_id", "freq".
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

// The series of a line, or one row of its two-dimensional target.
struct JsonSeries {
  std::string id = {};  // "item_id" (plus ".0", ".1", ... for two dimensions), or "line_7"
  std::int64_t line = 0;
  Ticks start = 0;
  Frequency frequency = {};        // unknown if the line has no "freq"
  std::vector<float> values = {};  // NaN for null and for the spellings of a missing cell
};

struct JsonLines {
  TimeStyle style = {};
  std::size_t num_series = 0;
  std::vector<std::string> warnings = {};
};

// Whether the text is JSON: a CSV header does not begin with `{` or with `[` and `{`.
bool looks_like_json(std::string_view head);

// Calls `take` for each series, with the style of the times read so far. Error(corrupt_file) names
// file and line. A line may have 64 MB.
using TakeJsonSeries = std::function<void(JsonSeries series, const TimeStyle& style)>;
JsonLines read_json_lines(io::TextInput& input, const TakeJsonSeries& take);

}  // namespace toto::tables
