// Any bytes are either refused with one sentence that names the input, or become series that keep
// what series_file.h promises; and the pieces the bytes come in make no difference.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "require.h"
#include "tables/series_file.h"
#include "tests/slow_source.h"

namespace {

using namespace toto;
using namespace toto::io;
using namespace toto::tables;

void check(const InputSeries& series) {
  require(!series.id.empty() && first_invalid_utf8(series.id) == series.id.size());
  require(!series.values.empty() && !std::isnan(series.values.front()));
  require(std::none_of(series.values.begin(), series.values.end(),
                       [](float value) { return std::isinf(value); }));
  const auto& times = series.axis->times;
  require(times.size() >= series.values.size());
  require(std::adjacent_find(times.begin(), times.end(), std::greater_equal<>()) == times.end());
  const TimeAxis future = future_axis(series, 3);
  if (future.frequency.unit != Frequency::Unit::unknown) {
    require(future.times.front() > times.back() && future.times[2] > future.times[1]);
  }
}

// Nothing, or the series of the whole file; `read` is what there are of them, none if it is bad.
void check_streamed(std::string_view bytes, const ReadOptions& options,
                    const std::vector<InputSeries>* read) {
  SlowSource source(bytes, 4096);
  std::size_t count = 0;
  bool same = read != nullptr;
  try {
    const auto data = stream_series(source, "input", options, [&](const InputSeries& series) {
      same = same && count < read->size() && series.id == (*read)[count].id &&
             series.values.size() == (*read)[count].values.size();
      ++count;
    });
    require(!data || (same && count == read->size() && data->num_series == count));
  } catch (const toto::Error&) {
    require(read == nullptr);
  }
}

// What was read, or the sentence why not.
std::string outcome(std::string_view bytes, std::size_t step, const ReadOptions& options) {
  SlowSource source(bytes, step);
  std::optional<InputData> data;
  std::string said;
  try {
    data = read_series(source, "input", options);
    said = data->description;
    for (const InputSeries& series : data->series) check(series);
  } catch (const toto::Error& error) {
    said = error.what();
    require(error.code() == toto::ErrorCode::corrupt_file ||
            error.code() == toto::ErrorCode::invalid_argument);
    require(said.find('\n') == std::string::npos && !said.empty());
  }
  check_streamed(bytes, options, data ? &data->series : nullptr);
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  require(outcome(bytes, 1 << 20, {}) == outcome(bytes, 61, {}));
  outcome(bytes, 1 << 20, {.format = InputFormat::csv_wide, .frequency = "h"});
  outcome(bytes, 1 << 20, {.format = InputFormat::csv_long, .frequency = "M"});
  outcome(bytes, 1 << 20, {.also = {"a", "volume"}, .frequency = "B"});
  outcome(bytes, 1 << 20, {.format = InputFormat::csv_ohlcv, .columns = {"open", "close"}});
  return 0;
}
