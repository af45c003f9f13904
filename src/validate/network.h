// Does the answer come from the network? Statistics of the input (loc, scale) agree between engines
// whatever the network says, and two engines without any network agree perfectly.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "validate/verify.h"

namespace toto::validate {

inline constexpr std::array<std::string_view, 7> kTraceOutputs = {
    "loc", "scale", "df", "component_loc", "component_scale", "logits", "mean"};
// More than this share of an output's mean size is no rounding of float32 any more.
inline constexpr double kRoundingNoise = 1e-5;

// Numbers that no network of this kind can say, in words; empty: none.
std::string impossible(const Trace& trace);

// What is the same in the answers to two different series though the network should tell them
// apart, in words; empty: nothing.
std::string same_answer(const Trace& a, const Trace& b);

// What an engine says about a series and about a seeded one, which is another: the network's
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
