// Times of calls as a distribution: a mean alone hides the call that took five times as long.
#pragma once

#include <span>
#include <vector>

#include "io/json.h"

namespace toto::validate {

struct Latency {  // milliseconds; all NaN without a call
  double min = 0, p50 = 0, p95 = 0, p99 = 0, max = 0, mean = 0;
  double std = 0;  // n - 1 below the line; 0 for a single call
};
Latency latency_of(std::span<const double> milliseconds);

// The value below which a share of the sorted values lies, linear between neighbours.
double percentile(std::span<const double> sorted, double share);

// {"min", "p50", "p95", "p99", "mean", "std"}, as `toto bench` has always had it.
void write_latency(io::JsonWriter& json, const Latency& latency);

}  // namespace toto::validate
