// Does the answer come from the network? Statistics of the input (loc, scale) agree between engines
// whatever the network says, and two engines without any network agree perfectly.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/verify.h"

namespace toto::validate {

// The names of all arrays of a trace, in order.
std::vector<std::string_view> output_names(const Trace& trace);
// The path that is fed back: "mean" or "median", by whichever the trace has; empty if neither.
std::span<const double> path_of(const Trace& trace);
// More than this share of an output's mean size is more than rounding of float32.
inline constexpr double kRoundingNoise = 1e-5;

// Numbers that no network of this kind can say, in words; empty: none.
std::string impossible(const Trace& trace);

// Names an array that is the same for two different series though the network should tell them
// apart, in words; empty: none.
std::string same_answer(const Trace& a, const Trace& b);

// An engine's answers about a series and about a seeded one, which is another: the network's
// numbers for both, and a forecast of the first that must rest on them.
struct Probe {
  Trace first, second;
  Forecast forecast = {};  // exact, of one patch
};
Probe probe_network(Runner& runner, const Series& series);

// The figure is the largest deviation from the yardstick, as a share of an output's mean size.
// Fails also where the answers are impossible, the same for both series, or not what the forecast
// rests on.
Check judge_probe(std::string name, const Probe& ours, const Probe& reference, DType dtype);

}  // namespace toto::validate
