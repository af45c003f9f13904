// Any bytes as an inference request: the first two say how many of the others are JSON.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/decompress.h"
#include "server/protocol_oip.h"

namespace {

using namespace toto::server;

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Read>
void read(const Read& action) {
  try {
    action();
  } catch (const toto::Error& error) {
    require(error.code() != toto::ErrorCode::internal);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const RequestLimits limits{
      .max_series = 1000, .max_horizon = 1000, .max_answer_bytes = 1 << 24, .max_memory = 1 << 20};
  const auto infer = [&](std::string_view body, std::string_view length) {
    read([&] {
      for (const toto::Series& series : prepare_oip(body, length, "m", limits).series) {
        require(series.values.size() % static_cast<std::size_t>(series.num_variates) == 0);
        require(series.mask.empty() || series.mask.size() == series.values.size());
      }
    });
  };
  infer(bytes, "");
  if (size >= 2) {
    const std::string length = std::to_string(data[0] * 256 + data[1]);
    infer(bytes.substr(2), length);
  }
  for (const char* encoding : {"gzip", "deflate", "zstd"}) {
    read([&] {
      std::size_t taken = 0;
      const auto take = [&](std::size_t made) { return (taken += made) <= 1 << 20; };
      const auto body = decompress(std::string(bytes), encoding, take);
      require(!body || body->size() == taken);
    });
  }
  return 0;
}
