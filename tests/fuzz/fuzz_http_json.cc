// Any bytes as the body of each JSON protocol: a plan within the limits, or one sentence.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "io/json.h"
#include "server/protocol_chronos.h"
#include "server/protocol_nixtla.h"
#include "server/protocol_series.h"
#include "server/protocol_v1.h"
#include "server/session_store.h"

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
    require(error.code() == toto::ErrorCode::corrupt_file ||
            error.code() == toto::ErrorCode::invalid_argument ||
            error.code() == toto::ErrorCode::unsupported);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

void check(const PreparedRequest& plan, const RequestLimits& limits) {
  require(!plan.series.empty() && plan.series.size() <= limits.max_series);
  require(plan.options.horizon >= 1 && plan.options.horizon <= limits.max_horizon);
  std::size_t num_values = 0;
  for (const toto::Series& series : plan.series) {
    num_values += series.values.size() + series.future_exogenous.size();
    require(series.num_variates >= 1);
    require(series.values.size() % static_cast<std::size_t>(series.num_variates) == 0);
    require(series.future_exogenous.size() == static_cast<std::size_t>(series.num_exogenous) *
                                                  static_cast<std::size_t>(plan.options.horizon));
  }
  require(num_values * sizeof(float) <= limits.max_memory);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const RequestLimits limits{
      .max_series = 1000, .max_horizon = 1000, .max_answer_bytes = 1 << 24, .max_memory = 1 << 20};
  read([&] {
    const toto::io::Json body = toto::io::parse_json(bytes, "the request", 10'000);
    for (const auto planner : {prepare_v1, prepare_chronos, prepare_nixtla_forecast,
                               prepare_nixtla_cross_validation, prepare_nixtla_anomaly_detection}) {
      read([&] { check(planner(body, limits), limits); });
    }
    read([&] { series_json(body, limits); });
    read([&] {
      StreamSession session;
      require(read_session(body, limits, session) == 0);
      require(session.history.values.size() * sizeof(float) <= limits.max_memory);
    });
    read([&] { read_points(body, 2); });
  });
  return 0;
}
