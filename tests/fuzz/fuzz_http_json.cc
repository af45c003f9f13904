// Any bytes as the body of each JSON protocol: a request within the limits, or one sentence.
#include <cstdint>
#include <string_view>

#include "http_limits.h"
#include "io/json.h"
#include "server/protocol_chronos.h"
#include "server/protocol_nixtla.h"
#include "server/protocol_series.h"
#include "server/protocol_v1.h"
#include "server/session_store.h"

namespace {

using namespace toto::server;

void check(const PreparedRequest& prepared, const RequestLimits& limits) {
  require(!prepared.series.empty() && prepared.series.size() <= limits.max_series);
  require(prepared.options.horizon >= 1 && prepared.options.horizon <= limits.max_horizon);
  std::size_t num_values = 0;
  for (const toto::Series& series : prepared.series) {
    num_values += series.values.size() + series.future_exogenous.size();
    require(series.num_variates >= 1);
    require(series.values.size() % static_cast<std::size_t>(series.num_variates) == 0);
    require(series.future_exogenous.size() ==
            static_cast<std::size_t>(series.num_exogenous) *
                static_cast<std::size_t>(prepared.options.horizon));
  }
  require(num_values * sizeof(float) <= limits.max_memory);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const RequestLimits& limits = kFuzzLimits;
  expect_one_sentence([&] {
    const toto::io::Json body = toto::io::parse_json(bytes, "the request", 10'000);
    for (const auto prepare : {prepare_v1, prepare_chronos, prepare_nixtla_forecast,
                               prepare_nixtla_cross_validation, prepare_nixtla_anomaly_detection}) {
      expect_one_sentence([&] { check(prepare(body, limits), limits); });
    }
    expect_one_sentence([&] { series_json(body, limits); });
    expect_one_sentence([&] {
      StreamSession session;
      require(read_session(body, limits, session) == 0);
      require(session.history.values.size() * sizeof(float) <= limits.max_memory);
    });
    expect_one_sentence([&] { read_points(body, 2); });
  });
  return 0;
}
