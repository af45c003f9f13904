#include "validate/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace toto::validate {

double percentile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return NAN;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

Latency latency_of(std::span<const double> milliseconds) {
  if (milliseconds.empty()) return {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  std::vector<double> sorted(milliseconds.begin(), milliseconds.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double x : sorted) squares += (x - mean) * (x - mean);
  return {.min = sorted.front(),
          .p50 = percentile(sorted, 0.50),
          .p95 = percentile(sorted, 0.95),
          .p99 = percentile(sorted, 0.99),
          .max = sorted.back(),
          .mean = mean,
          .std = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

void write_latency(io::JsonWriter& json, const Latency& latency) {
  json.begin_object()
      .field("min", latency.min)
      .field("p50", latency.p50)
      .field("p95", latency.p95)
      .field("p99", latency.p99)
      .field("mean", latency.mean)
      .field("std", latency.std)
      .end_object();
}

}  // namespace toto::validate
