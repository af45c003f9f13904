// Checks that answers come from the network. Statistics of the input (loc, scale) agree between
// engines whatever the network computes, and two engines without any network agree perfectly.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/judged_report.h"
#include "validate/runner.h"

namespace toto::validate {

// The names of all arrays of a trace, in order.
std::vector<std::string_view> output_names(const Trace& trace);
// The path that is fed back: "mean" or "median", whichever the trace has; empty if neither.
std::span<const double> path_of(const Trace& trace);
// A larger share of an output's mean size is more than float32 rounding.
inline constexpr double kRoundingNoise = 1e-5;

// A sentence about numbers that no such network can output; empty: none.
std::string impossible(const Trace& trace);

// A sentence that names an array with the same values for two different series; empty: none.
std::string same_answer(const Trace& a, const Trace& b);

// An engine's outputs for a series and for another, seeded one: the network's numbers for both, and
// a forecast of the first, which must be based on them.
struct NetworkProbe {
  Trace first, second;
  Forecast forecast = {};  // exact, of one patch
};
NetworkProbe probe_network(Runner& runner, const Series& series);

// The figure is the largest deviation from `reference`, as a share of an output's mean size. Fails
// also if outputs are impossible, the same for both series, or not the basis of the forecast.
CheckResult judge_probe(std::string name, const NetworkProbe& ours, const NetworkProbe& reference,
                        DType dtype);

}  // namespace toto::validate
