// scaler.py: statistics of the history in float64, causal where the model's scaler is.
//
// The reference recomputes all statistics at every decoding step; they are cumulative, so carrying
// the running sums over gives the same numbers at the price of the new patch only. Copying a
// ScalerState forks a path.
#pragma once

#include <cstdint>
#include <span>

#include "model/scaler_state.h"
#include "model/toto1/config.h"

namespace toto {

// What the scale of a series cannot fall below, however little it varies.
double minimum_scale(const Toto1Config& config) noexcept;

// Context statistics that later values must not touch: `values` and `mask` are the padded context.
template <typename T>
ScalerState start_scaler(const Toto1Config& config, std::span<const T> values,
                         std::span<const std::uint8_t> mask) noexcept;

// Takes in the next patch and scales it: scaled = (value - loc) / scale. `loc` and `scale` receive
// the statistics of each of its steps, which are also the affine transform of the next patch's
// forecast. A null mask means that every value counts.
template <typename T>
void scale_patch(const Toto1Config& config, ScalerState& state, const T* values,
                 const std::uint8_t* mask, T* scaled, double* loc, double* scale) noexcept;

// A whole padded context, in place. `loc` and `scale` receive the statistics of its last patch; the
// state goes on from there.
ScalerState scale_context(const Toto1Config& config, std::span<float> values,
                          std::span<const std::uint8_t> mask, double* loc, double* scale) noexcept;

}  // namespace toto
