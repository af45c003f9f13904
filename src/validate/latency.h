// Times of calls as a distribution: a mean alone hides a call that took five times as long.
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
  double std = 0;         // divided by n - 1; 0 for a single call
  std::size_t count = 0;  // of calls; a percentile of a few calls is just the slowest one
};
Latency latency_of(std::span<const double> milliseconds);

// A longer tail gets a remark. It is not a failure: other load on the machine causes it as well.
inline constexpr double kLongTail = 3;  // p95 over p50
std::optional<std::string> tail_remark(std::string_view what, const Latency& latency);

// The value below which this share of the sorted values lies, interpolated linearly.
double percentile(std::span<const double> sorted, double share);

// {"min", "p50", "p95", "p99", "mean", "std"}, the format of `toto bench`.
void write_latency(io::JsonWriter& json, const Latency& latency);
// The same with "n" in front.
void write_counted_latency(io::JsonWriter& json, const Latency& latency);

}  // namespace toto::validate
