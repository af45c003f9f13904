#include "model/toto2/toto2_scaler.h"

#include <algorithm>
#include <cmath>

#include "base/elementary.h"

namespace toto {
namespace {

// Adds a value to the statistics of the first ones, as long as they are too few.
void add_to_first(ScalerState& state, double x) noexcept {
  if (state.first_weight >= state.min_observed) return;
  const double before = state.first_mean;
  state.first_weight += 1;
  state.first_mean += (x - before) / state.first_weight;
  state.first_m2 += (x - before) * (x - state.first_mean);
}

void add_value(ScalerState& state, double x) noexcept {
  state.weight += 1;
  state.sum += x;
  const double before = state.mean;
  state.mean = state.sum / state.weight;
  state.m2 += (x - before) * (x - state.mean);
}

struct Transform {
  double loc, scale;
};

// The statistics at the end of a patch.
Transform transform_of(const ScalerState& state) noexcept {
  const bool few = state.weight < state.min_observed;
  const double squares = few ? state.first_m2 : state.m2;
  const double count = few ? state.first_weight : state.weight;
  const double deviation = std::sqrt(squares / std::max(count - 1, 1.0));
  return {few ? state.first_mean : state.mean, std::max(deviation, kToto2MinimumScale)};
}

float scaled(double x, const Transform& transform) noexcept {
  return static_cast<float>(elementary::asinh((x - transform.loc) / transform.scale));
}

}  // namespace

ScalerState toto2_read_context(int patch, std::span<float> rows, std::span<const std::uint8_t> mask,
                               const ContextReading& reading, double* loc, double* scale) noexcept {
  ScalerState state;
  state.min_observed = reading.min_observed;
  for (std::size_t t = 0; t < mask.size() && state.first_weight < state.min_observed; ++t) {
    if (mask[t] != 0) add_to_first(state, rows[t]);
  }
  for (std::size_t i = 0; i < reading.known_future.size(); ++i) {
    const float x = reading.known_future[i];
    if (!std::isnan(x)) add_to_first(state, x);
  }
  state.first_complete = !reading.known_future.empty();

  ForecastRange range{0, 0};
  for (std::size_t first = 0; first < mask.size(); first += patch) {
    for (std::size_t t = first; t < first + patch; ++t) {
      if (mask[t] == 0) continue;
      const double x = rows[t];
      range = state.weight == 0 ? ForecastRange{x, x}
                                : ForecastRange{std::min(range.low, x), std::max(range.high, x)};
      add_value(state, x);
    }
    const Transform transform = transform_of(state);
    for (std::size_t t = first; t < first + patch; ++t) {
      rows[t] = mask[t] != 0 ? scaled(rows[t], transform) : 0.0f;
    }
  }
  // Rows are wider than patches: they move to their place from the back.
  for (std::size_t end = mask.size(); end > 0; end -= patch) {
    float* row = &rows[2 * (end - patch)];
    std::copy_backward(&rows[end - patch], &rows[end - patch] + patch, row + patch);
    for (int i = 0; i < patch; ++i) row[patch + i] = mask[end - patch + i] != 0 ? 0.0f : 1.0f;
  }
  const Transform last = transform_of(state);
  std::fill_n(loc, patch, last.loc);
  std::fill_n(scale, patch, last.scale);
  if (reading.cap > 0) {
    state.range = {range.low - reading.cap * last.scale, range.high + reading.cap * last.scale};
  }
  return state;
}

void toto2_read_patches(int patch, ScalerState& state, std::span<const float> values, bool flags,
                        float* rows, double* loc, double* scale) noexcept {
  if (!state.first_complete) {
    for (const float x : values) add_to_first(state, x);
  }
  for (std::size_t first = 0; first < values.size(); first += patch, rows += 2 * patch) {
    const float* x = &values[first];
    for (int i = 0; i < patch; ++i) {
      if (!std::isnan(x[i])) add_value(state, x[i]);
    }
    const Transform transform = transform_of(state);
    for (int i = 0; i < patch; ++i) {
      const bool missing = std::isnan(x[i]);
      rows[i] = missing ? 0.0f : scaled(x[i], transform);
      rows[patch + i] = missing && flags ? 1.0f : 0.0f;
    }
    std::fill_n(loc, patch, transform.loc);
    std::fill_n(scale, patch, transform.scale);
  }
}

}  // namespace toto
