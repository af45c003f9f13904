#include "validate/latency.h"

#include <fmt/format.h>

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
  if (milliseconds.empty()) return {NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0};
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
          .std = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0,
          .count = sorted.size()};
}

std::optional<std::string> tail_remark(std::string_view what, const Latency& latency) {
  if (!(latency.p95 > kLongTail * latency.p50)) return std::nullopt;
  return fmt::format(
      "{}: p95 is {:.3g} ms, {:.2g} times the {:.3g} ms of p50 (n {}); check what else uses "
      "these cores",
      what, latency.p95, latency.p95 / latency.p50, latency.p50, latency.count);
}

namespace {

void write_figures(io::JsonWriter& json, const Latency& latency) {
  json.field("min", latency.min)
      .field("p50", latency.p50)
      .field("p95", latency.p95)
      .field("p99", latency.p99)
      .field("mean", latency.mean)
      .field("std", latency.std);
}

}  // namespace

void write_latency(io::JsonWriter& json, const Latency& latency) {
  json.begin_object();
  write_figures(json, latency);
  json.end_object();
}

void write_counted_latency(io::JsonWriter& json, const Latency& latency) {
  json.begin_object().field("n", static_cast<std::uint64_t>(latency.count));
  write_figures(json, latency);
  json.end_object();
}

}  // namespace toto::validate
