// Decisions about a call that are made before anything is computed: how many paths, which series
// are batched, how much memory.
#pragma once

#include <span>
#include <vector>

#include "forecast/kept_contexts.h"
#include "forecast/series.h"
#include "toto/toto.h"

namespace toto {

// How a forecast is computed: what is drawn, what is fed back, and which steps are exact.
struct PathPlan {
  PathPlan() = default;
  PathPlan(const ForecastOptions& options, const ModelFacts& facts);
  int num_paths = 0;          // sampled paths, or 1 for the path of means; 0: nothing is drawn
  int stored_paths = 0;       // paths stored step by step, to be fed back or summarised
  int block_patches = 1;      // patches of the first block, predicted by the first pass
  int decode_patches = 0;     // patches beyond the first block
  int path_steps = 0;         // steps stored per path
  bool follows_mean = false;  // the one path holds the means
  // Steps beyond the exact ones are described by the average of the paths' distributions, not by
  // one draw of each.
  bool joins = false;
  // Steps whose distribution is exact: all for a path of means or medians, the first block for
  // sampled paths, or none.
  int exact_steps = 0;

  bool forks = false;    // paths share the context's keys and values and append their own
  int context_room = 0;  // positions appended to a context in the context's own memory

  // Steps whose distributions are stored for every path: whole patches, so that horizons of one
  // shape class share a plan.
  int joined_steps() const { return joins ? path_steps - exact_steps : 0; }
  int query_rows() const { return block_patches - 1; }  // rows after a context: patches to predict
  // Positions of the passes beyond the first block whose factors are stored per series.
  int decode_positions() const { return forks ? decode_patches : block_patches + query_rows(); }
};

// One series of a batch, and the contexts its session has kept, if it has one.
struct BatchItem {
  const Series* series = nullptr;
  KeptContexts* kept = nullptr;
  std::uint64_t origin = 0;  // points the session dropped before the series' first one
};

// One series of a running call. Pointers are views; the arena, the session or the caller owns them.
struct SeriesPlan {
  const Series* series = nullptr;
  Forecast* out = nullptr;
  KeptContexts* kept = nullptr;  // holds the context, keys and values instead of the arena
  ContextShape context;
  const float* inputs = nullptr;      // [variate][patch][input_width], the network's input
  const std::int64_t* ids = nullptr;  // [variate][patch]
  // Patches with a row before each patch, [variate][patch + 1]; null: every patch has one.
  const int* places = nullptr;
  int num_tokens = 0;        // positions of the context, leading rows included
  int first_token = 0;       // tokens before it are kept by the session
  int token_room = 0;        // num_tokens, or its size class if plans are cached
  int row_room = 0;          // the same for the tokens to compute
  int first_sequence = 0;    // index of its first variate in the group
  std::uint64_t stream = 0;  // part of the random key

  // Rows of a variate before a token.
  int rows_before(int variate, int token) const {
    return places == nullptr ? token
                             : places[std::size_t(variate) * (context.num_patches + 1) + token];
  }
};

// Series that share their passes: as many as fit into kPrefillRows and kPathBytes.
struct SeriesGroup {
  std::span<SeriesPlan> series;
  int num_sequences = 0;  // variates of all series
  int num_rows = 0;       // tokens of all sequences that must be computed
  int first_token = 0;    // the smallest of all series
  int max_tokens = 0;
  int row_room = 0;  // num_rows in terms of SeriesPlan::row_room
  int max_room = 0;  // max_tokens in terms of SeriesPlan::token_room
};

inline constexpr int kPrefillRows = 512;  // rows per pass: enough to be bound by arithmetic
inline constexpr int kDecodeRows = 256;   // the same for decode passes
inline constexpr std::size_t kPathBytes = std::size_t{128} << 20;   // paths of several series
inline constexpr std::size_t kJoinedBytes = std::size_t{64} << 20;  // averages in progress
inline constexpr std::size_t kTailBytes = std::size_t{192}
                                          << 20;  // keys and values of a decode pass

// Takes series from the front of `rest` and numbers their sequences. `path_bytes` is that of one
// variate.
SeriesGroup take_group(std::span<SeriesPlan>& rest, std::size_t path_bytes);

}  // namespace toto
