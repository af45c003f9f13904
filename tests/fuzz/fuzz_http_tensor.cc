// Any bytes as an inference request: the first two are the number of JSON bytes that follow.
#include <cstdint>
#include <string>
#include <string_view>

#include "http_limits.h"
#include "server/decompress.h"
#include "server/protocol_oip.h"

using namespace toto::server;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto infer = [&](std::string_view body, std::string_view length) {
    expect_one_sentence([&] {
      for (const toto::Series& series : prepare_oip(body, length, "m", kFuzzLimits).series) {
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
    expect_one_sentence([&] {
      std::size_t taken = 0;
      const auto take = [&](std::size_t made) { return (taken += made) <= 1 << 20; };
      const auto body = decompress(std::string(bytes), encoding, take);
      require(!body || body->size() == taken);
    });
  }
  return 0;
}
