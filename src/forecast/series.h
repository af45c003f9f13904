// Validates a caller's series and turns it into a context: cut, gaps filled, left-padded.
#pragma once

#include <cstdint>
#include <span>

#include "model/architecture.h"
#include "toto/toto.h"

namespace toto {

// The part of a series that is used and its division into patches.
struct ContextShape {
  std::size_t first = 0;  // first time step used
  int length = 0;         // time steps used
  int num_patches = 0;
  bool reads_gaps = false;  // ModelFacts::reads_gaps
  int padded(int patch) const { return num_patches * patch; }
};

// Both throw Error(invalid_argument) that names the option or the series. A series without an id is
// named by its place in the batch, from 0; kByItself if it is not in a batch.
void validate_options(const ForecastOptions& options);
inline constexpr int kByItself = -1;
void validate_series(const Series& series, int horizon, int place = kByItself);
// The same for what only some models accept.
void validate_for(const ModelFacts& facts, const ForecastOptions& options);
void validate_for(const ModelFacts& facts, const Series& series, int place = kByItself);

// The last `max_context` steps, without leading steps at which no variate has a value (unless the
// series has an explicit mask, which defines the layout). Refuses group ids that change inside a
// patch.
ContextShape context_shape(const Series& series, int max_context, const ModelFacts& facts,
                           int place = kByItself);

// A value as the network reads it.
inline float scaled(float value, double factor) noexcept {
  return static_cast<float>(value * factor);
}
// Writes the factor of each variate, [variate]: `options.scale`, or the automatic power of two for
// the observed values of the context. Error(corrupt_file) if a factor asked for takes a value out
// of float32.
void choose_scale(const Series& series, const ContextShape& shape, const ForecastOptions& options,
                  const ModelFacts& facts, std::span<double> scale, int place = kByItself);

// The id of a patch without a value, for models that read gaps; not a valid group id there.
inline constexpr std::int64_t kNoPatch = -1;
// The group id of a variate's future.
std::int64_t last_id(const Series& series, int variate) noexcept;
// Whether a variate of a series has a known future, and its values times `factor`.
bool is_known(const Series& series, int variate) noexcept;
KnownFuture known_future(const Series& series, int variate, double factor) noexcept;

// Writes the padded context of all variates: `mask` is [variate][padded], `ids` [variate][patch],
// `values` [variate][padded] with `stride` floats from variate to variate. Padding is zero with
// mask 0 (dataset.py: pad_array), ids repeat their first value (pad_id_mask). Missing values are
// filled as `missing` says, also from values before the context; leading ones of a variate are
// masked. For models that read gaps, filled values are masked too, the last patch of a variate that
// is forecast is not masked at all (padding included), and patches without a value have the id
// kNoPatch. Everything is multiplied by the variate's factor of `scale`.
void write_context(const Series& series, const ContextShape& shape, Missing missing,
                   std::span<const double> scale, int patch, std::size_t stride, float* values,
                   std::uint8_t* mask, std::int64_t* ids) noexcept;

}  // namespace toto
