// From the head's raw output to quantiles in the units of the data.
#pragma once

#include <span>

#include "model/architecture.h"
#include "model/toto2/toto2_config.h"

namespace toto {

// The distribution of one step. `raw` is the head's output for the step's patch, [step][level].
// `memory` has kToto2NumLevels elements.
template <typename T>
StepDistribution toto2_step(const T* raw, int patch, int step, double loc, double scale,
                            ForecastRange range, std::span<double> memory) noexcept;

// Adds loc, scale and raw. `raw` is [variate][output][step][level] with `stride` values per output;
// loc and scale are [variate].
template <typename T>
void toto2_trace(int num_variates, int outputs, int patch, const T* raw, std::size_t stride,
                 std::vector<double> loc, std::vector<double> scale, Trace& trace);

}  // namespace toto
