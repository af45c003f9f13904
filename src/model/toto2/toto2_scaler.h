// Statistics of the history in float64 and the network's input: asinh of the scaled values, then a
// flag for each, 1 where the value is missing.
#pragma once

#include <cstdint>
#include <span>

#include "model/architecture.h"

namespace toto {

inline constexpr double kToto2MinimumScale = 1e-6;

// As Network::read_context. `patch` is the steps per row.
ScalerState toto2_read_context(int patch, std::span<float> rows, std::span<const std::uint8_t> mask,
                               const ContextReading& reading, double* loc, double* scale) noexcept;

// As Network::read_block for values [patch][step]; NaN is missing. `flags`: missing values are
// marked as such, which the reference does not do for a block that is fed back.
void toto2_read_patches(int patch, ScalerState& state, std::span<const float> values, bool flags,
                        float* rows, double* loc, double* scale) noexcept;

}  // namespace toto
