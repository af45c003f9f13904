// Times of calls as a distribution: a mean alone hides the call that took five times as long.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace toto::validate {

struct Latency {  // milliseconds; all NaN without a call
  double min = 0, p50 = 0, p95 = 0, p99 = 0, max = 0, mean = 0;
  double std = 0;         // n - 1 below the line; 0 for a single call
  std::size_t count = 0;  // of calls: a percentile of a handful is no more than its slowest
};
Latency latency_of(std::span<const double> milliseconds);

// From this many times the median on the tail is worth a remark. No failure: on a machine that
// others use it is theirs as often as ours.
inline constexpr double kLongTail = 3;  // p95 over p50
std::optional<std::string> tail_remark(std::string_view what, const Latency& latency);

// The value below which a share of the sorted values lies, linear between neighbours.
double percentile(std::span<const double> sorted, double share);

// {"min", "p50", "p95", "p99", "mean", "std"}, as `toto bench` has always had it.
void write_latency(io::JsonWriter& json, const Latency& latency);
// The same with "n" in front.
void write_counted_latency(io::JsonWriter& json, const Latency& latency);

}  // namespace toto::validate
