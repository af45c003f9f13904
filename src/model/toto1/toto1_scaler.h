// scaler.py: statistics of the history in float64, causal if the model's scaler is.
//
// The reference recomputes all statistics at every decoding step. They are cumulative, so running
// sums give the same numbers at the cost of the new patch only.
#pragma once

#include <cstdint>
#include <span>

#include "model/scaler_state.h"
#include "model/toto1/toto1_config.h"

namespace toto {

// The lower bound of the scale of a series, however little it varies.
double minimum_scale(const Toto1Config& config) noexcept;

// Computes the context statistics that later values do not change. `values` and `mask` are the
// padded context.
template <typename T>
ScalerState start_scaler(const Toto1Config& config, std::span<const T> values,
                         std::span<const std::uint8_t> mask) noexcept;

// Updates the state with the next patch and scales it: scaled = (value - loc) / scale. `loc` and
// `scale`, [patch_size] each, receive the statistics of each step, which are also the affine
// transform of the next patch's forecast. A null mask means that no value is missing.
template <typename T>
void scale_patch(const Toto1Config& config, ScalerState& state, const T* values,
                 const std::uint8_t* mask, T* scaled, double* loc, double* scale) noexcept;

// Scales a whole padded context in place. `loc` and `scale` receive the statistics of its last
// patch; the returned state continues from there.
ScalerState scale_context(const Toto1Config& config, std::span<float> values,
                          std::span<const std::uint8_t> mask, double* loc, double* scale) noexcept;

}  // namespace toto
