// Any bytes are either refused with one sentence that names the input, or become GluonTS series
// with a value each; and a frequency from outside never breaks what could be read without one.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "require.h"
#include "tables/series_file.h"

namespace {

using namespace toto;
using namespace toto::io;
using namespace toto::tables;

void read(std::string_view bytes, const ReadOptions& options) {
  MemorySource source(bytes);
  try {
    for (const InputSeries& series : read_series(source, "input", options).series) {
      require(first_invalid_utf8(series.id) == series.id.size());
      require(!series.values.empty() && !std::isnan(series.values.front()));
      require(series.axis->times.empty() || series.axis->times.size() >= series.values.size());
      require(future_timestamps(series, 2).size() == 2);
    }
  } catch (const toto::Error& error) {
    const std::string_view sentence = error.what();
    require(error.code() == toto::ErrorCode::corrupt_file ||
            error.code() == toto::ErrorCode::invalid_argument);
    require(sentence.find('\n') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes, {.format = InputFormat::jsonl});
  read(bytes, {.format = InputFormat::jsonl, .frequency = "Q"});
  return 0;
}
