// A request in the form the engine takes: every protocol reads its own JSON or tensors into a
// PreparedRequest, and nothing after it depends on the protocol.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "http_message.h"
#include "scheduler.h"
#include "toto/toto.h"

namespace toto::server {

// Limits of a request, checked before memory is allocated, and its defaults.
struct RequestLimits {
  std::size_t max_series = 100'000;  // per request
  int max_horizon = kMaxHorizon;
  int max_samples = kMaxSamples;
  std::size_t max_answer_bytes = std::size_t{256} << 20;  // of numbers, before they become text
  std::size_t max_body = kDefaultMaxBody;                 // decompressed
  std::size_t max_memory = std::size_t{256} << 20;        // of series and paths
  // Of the series that the current thread may build: small requests wait for it.
  std::size_t max_series_bytes_here = std::numeric_limits<std::size_t>::max();
  MemoryShare* memory =
      nullptr;  // series, paths and answer are charged to it; nullptr: not counted
  ModelFacts facts = {.patch = 64, .block = 64, .can_sample = true};  // of the model in use
  std::uint64_t seed = 0;
};

struct PreparedRequest {
  std::vector<Series> series = {};
  ForecastOptions options = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::function<HttpResponse(const ForecastAnswer&)> write_answer = {};
  // Above 0: nothing was prepared, because the series would take this many bytes, more than
  // max_series_bytes_here. Prepare the request again on a thread for larger ones. The size of a
  // body does not predict it: the windows of a cross-validation are many times their body.
  std::size_t bytes_too_large_here = 0;
};

// The dimensions of a series, known before it is built.
struct SeriesShape {
  std::size_t num_variates = 1, length = 0, num_exogenous = 0;
};
SeriesShape shape_of(const Series& series);

// Checks that series of these shapes, the paths drawn for them and the answer fit the limits and
// the memory that all requests share, and charges them to it. Error(invalid_argument) if they never
// fit, Error(overloaded) while other requests hold the memory. Returns 0, or bytes_too_large_here
// (see above): nothing is charged then.
[[nodiscard]] std::size_t check_size(const RequestLimits& limits,
                                     std::span<const SeriesShape> shapes,
                                     const ForecastOptions& options);

// Drops missing values before the first known one, as the command line does.
void drop_leading_missing(std::vector<float>& values);

}  // namespace toto::server
