// Any bytes are either refused with one sentence that names the input, or become series that keep
// what series_file.h promises; and the pieces the bytes come in make no difference.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/series_file.h"
#include "io/utf8.h"

namespace {

using namespace toto::io;

class SlowSource final : public ByteSource {
 public:
  SlowSource(std::string_view bytes, std::size_t step) : bytes_(bytes), step_(step) {}
  std::size_t read(char* dst, std::size_t size) override {
    const std::size_t count = bytes_.copy(dst, std::min(size, step_));
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
  std::size_t step_;
};

void require(bool holds) {
  if (!holds) std::abort();
}

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

// What was read, or the sentence why not.
std::string outcome(std::string_view bytes, std::size_t step, const ReadOptions& options) {
  SlowSource source(bytes, step);
  try {
    const InputData data = read_series(source, "input", options);
    for (const InputSeries& series : data.series) check(series);
    return data.description;
  } catch (const toto::Error& error) {
    const std::string_view sentence = error.what();
    require(error.code() == toto::ErrorCode::corrupt_file ||
            error.code() == toto::ErrorCode::invalid_argument);
    require(sentence.find('\n') == std::string_view::npos && !sentence.empty());
    return std::string(sentence);
  }
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
