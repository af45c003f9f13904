// What one call will do, decided before anything is computed: how many paths, which series are
// batched, how much memory.
#pragma once

#include <span>
#include <vector>

#include "forecast/kept_contexts.h"
#include "forecast/series.h"
#include "toto/toto.h"

namespace toto {

// How a forecast is made: what is drawn, what is fed back, and what is reported exactly.
struct PathPlan {
  PathPlan() = default;
  PathPlan(const ForecastOptions& options, const ModelFacts& facts);
  int num_paths = 0;          // drawn, or the one path of means; 0: nothing is drawn
  int stored_paths = 0;       // that are kept step by step, to be fed back or summarised
  int block_patches = 1;      // patches of the first block: what the first pass forecasts
  int decode_patches = 0;     // patches beyond it
  int path_steps = 0;         // steps a path holds: what is fed back or reported
  bool follows_mean = false;  // the one path is the mean
  // Steps that are reported exactly: all of a path of means or medians, the first block of sampled
  // ones, or none.
  int exact_steps = 0;

  bool forks = false;    // paths share a context and have their own keys and values behind it
  int context_room = 0;  // positions taken behind a context, in its own memory

  int query_rows() const { return block_patches - 1; }  // behind a context: patches to predict
  // Positions of the passes beyond the first block whose factors are kept for each series.
  int decode_positions() const { return forks ? decode_patches : block_patches + query_rows(); }
};

// One series of a call, and what earlier calls of its session left behind, if it has one.
struct Job {
  const Series* series = nullptr;
  KeptContexts* kept = nullptr;
  std::uint64_t origin = 0;  // points of the session dropped before the series' first
};

struct SeriesPlan {
  const Series* series = nullptr;
  Forecast* out = nullptr;
  KeptContexts* kept = nullptr;  // holds the context, its keys and its values, instead of the arena
  ContextShape context;
  const float* inputs = nullptr;      // [variate][patch][input_width], what the network reads
  const std::int64_t* ids = nullptr;  // [variate][patch]
  int num_tokens = 0;                 // positions of the context, leading rows included
  int first_token = 0;                // those before it are kept
  int token_room = 0;                 // positions that memory is laid out for
  int row_room = 0;                   // the same of those to be computed
  int first_sequence = 0;             // index of its first variate among the group's
  std::uint64_t stream = 0;           // added to the random key
};

// Series that share their passes: as many as fill a pass well and fit the memory meant for paths.
struct Group {
  std::span<SeriesPlan> series;
  int num_sequences = 0;  // variates of all series
  int num_rows = 0;       // tokens of all sequences that are to be computed
  int first_token = 0;    // the smallest of all series
  int max_tokens = 0;
  int row_room = 0;  // as num_rows and max_tokens, of the room there is
  int max_room = 0;
};

inline constexpr int kPrefillRows = 512;  // enough rows to be bound by arithmetic
inline constexpr int kDecodeRows = 256;
inline constexpr std::size_t kPathBytes = std::size_t{128} << 20;  // of a group of several series
inline constexpr std::size_t kTailBytes = std::size_t{192}
                                          << 20;  // keys and values of one decode chunk

// Takes series from the front of `rest` and numbers their sequences.
Group take_group(std::span<SeriesPlan>& rest, const PathPlan& paths);

}  // namespace toto
