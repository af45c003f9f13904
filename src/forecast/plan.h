// What one call will do, decided before anything is computed: how many paths, which series travel
// together, how much memory.
#pragma once

#include <span>
#include <vector>

#include "forecast/kept_contexts.h"
#include "forecast/series.h"
#include "model/config.h"
#include "toto/toto.h"

namespace toto {

// How the paths beyond the first patch are made.
struct PathPlan {
  PathPlan(const ForecastOptions& options, int patch_size);
  bool exact_first_patch =
      true;                // mean and quantiles of the first patch straight from its distribution
  int num_paths = 0;       // 0: nothing is drawn; 1 with decode mean
  int decode_patches = 0;  // patches beyond the first
  int path_steps = 0;      // steps a path holds: what is fed back or reported
  bool follows_mean = false;  // the one path is the mean
  // Steps that are reported exactly: all of a mean path, the first patch of sampled ones, or none.
  int exact_steps = 0;
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
  const float* scaled = nullptr;      // [variate][patch][patch_size], what the network reads
  const std::int64_t* ids = nullptr;  // [variate][patch]
  int num_tokens = 0;                 // positions of the context, a variate label included
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
