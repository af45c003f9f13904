// A third architecture, in tests only.
#pragma once

#include <array>

#include "model/architecture.h"

namespace toto {

std::unique_ptr<Architecture> parse_linear_patches(const io::Json& config, std::string_view what,
                                                   std::vector<std::string>& warnings);

// What the network and the oracle share: names, and how a row of the head is read.
namespace linear_patches {

inline constexpr std::array kLevels = {0.1, 0.3, 0.5, 0.7, 0.9};
inline constexpr int kNumLevels = kLevels.size();
inline constexpr const char* kNames[] = {"weight", "bias", "drift", "query"};

std::unique_ptr<Oracle> make_oracle(const Checkpoint& checkpoint, int patch);

// One variate's loc, scale and head rows, as both the network and the oracle hand them to a trace.
inline void add_trace(int variates, int patches, int patch, const auto& loc_of,
                      const auto& scale_of, const auto& raw_of, Trace& trace) {
  TraceArray loc{.name = "loc", .shape = {variates}, .values = {}};
  TraceArray scale{.name = "scale", .shape = {variates}, .values = {}};
  TraceArray raw{.name = "raw",
                 .shape = {kNumLevels, variates, patches, patch},
                 .values = {},
                 .variate_axis = 1,
                 .step_axis = 3,
                 .distinctive = true};
  for (int v = 0; v < variates; ++v) {
    loc.values.push_back(loc_of(v));
    scale.values.push_back(scale_of(v));
  }
  for (int i = 0; i < kNumLevels * variates * patches * patch; ++i) {
    const int step = i % patch, p = i / patch % patches, v = i / patch / patches % variates;
    raw.values.push_back(raw_of(v, p, step * kNumLevels + i / patch / patches / variates));
  }
  for (TraceArray* array : {&loc, &scale, &raw}) trace.arrays.push_back(std::move(*array));
}

inline StepDistribution step_of(const auto* head, double loc, double scale,
                                std::span<double> memory) {
  for (int i = 0; i < kNumLevels; ++i) memory[i] = head[i] * scale + loc;
  return StepDistribution(QuantileKnots(kLevels, memory.first(kNumLevels)));
}

}  // namespace linear_patches

}  // namespace toto
