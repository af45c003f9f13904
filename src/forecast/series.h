// From what the caller hands in to what the network reads: checked, filled, cut and left-padded.
#pragma once

#include <cstdint>
#include <span>

#include "toto/toto.h"

namespace toto {

// Which part of a series is used and how it falls into patches.
struct ContextShape {
  std::size_t first = 0;  // first time step used
  int length = 0;         // time steps used
  int num_patches = 0;
  int padded(int patch_size) const { return num_patches * patch_size; }
};

// Everything that can be wrong with the options or a series: Error(invalid_argument) naming both.
void validate_options(const ForecastOptions& options);
// A series without an id is named by its place in the batch, counted from 0; one by itself has
// none.
inline constexpr int kByItself = -1;
void validate_series(const Series& series, int horizon, int place = kByItself);

// The last `max_context` steps, less leading steps at which no variate has a value yet (unless the
// series has an explicit mask: then its layout is the caller's). Refuses group ids that change
// inside a patch.
ContextShape context_shape(const Series& series, int max_context, const ModelFacts& facts,
                           int place = kByItself);

// Writes the padded context of all variates: `mask` is [variate][padded], `ids` [variate][patch],
// `values` [variate] at a distance of `stride` floats, padded values each. Padding is zero with
// mask 0 (dataset.py: pad_array), ids repeat their first value (pad_id_mask). Missing values are
// filled as asked, from values before the context too; leading ones of a variate are masked.
void write_context(const Series& series, const ContextShape& shape, Missing missing, int patch_size,
                   std::size_t stride, float* values, std::uint8_t* mask,
                   std::int64_t* ids) noexcept;

}  // namespace toto
