// A small architecture for tests: linear_patches.cc implements it, linear_oracle.cc is its plain
// form, linear_table.cc adds its row to the table of architectures.
#pragma once

#include <array>

#include "model/architecture.h"

namespace toto {

std::unique_ptr<Architecture> parse_linear_patches(const io::Json& config, std::string_view what,
                                                   std::vector<std::string>& warnings);
std::unique_ptr<Oracle> make_linear_oracle(const Checkpoint& checkpoint, int patch);

namespace linear_patches {

inline constexpr std::array kLevels = {0.1, 0.3, 0.5, 0.7, 0.9};
inline constexpr int kNumLevels = kLevels.size();
inline constexpr const char* kNames[] = {"weight", "bias", "drift", "query"};  // of the tensors

// `head` is [level], in units of the scale.
inline StepDistribution step_of(const auto* head, double loc, double scale,
                                std::span<double> memory) {
  for (int i = 0; i < kNumLevels; ++i) memory[i] = head[i] * scale + loc;
  return StepDistribution(QuantileKnots(kLevels, memory.first(kNumLevels)));
}

// `heads` is [variate][patch][step][level]; the traced array has the levels first.
inline void add_trace(int variates, int patches, int patch, std::vector<double> loc,
                      std::vector<double> scale, const auto* heads, Trace& trace) {
  TraceArray raw{.name = "raw",
                 .shape = {kNumLevels, variates, patches, patch},
                 .values = {},
                 .variate_axis = 1,
                 .step_axis = 3,
                 .distinctive = true};
  const int size = variates * patches * patch;
  for (int i = 0; i < kNumLevels * size; ++i) {
    raw.values.push_back(heads[i % size * kNumLevels + i / size]);
  }
  trace.arrays.push_back({.name = "loc", .shape = {variates}, .values = std::move(loc)});
  trace.arrays.push_back({.name = "scale", .shape = {variates}, .values = std::move(scale)});
  trace.arrays.push_back(std::move(raw));
}

}  // namespace linear_patches
}  // namespace toto
