// Code shared by decoders: contexts are read and run through the network once, split into pieces if
// they are long; decoders continue from there.
#pragma once

#include <cstddef>

#include "base/threads.h"
#include "forecast/group_memory.h"
#include "forecast/plan.h"
#include "model/architecture.h"
#include "toto/toto.h"

namespace toto {

// One call and the memory of its current group of series. Not thread-safe.
struct RunningCall {
  RunningCall(const Network& used, const Kernels& used_kernels, ThreadPool& threads)
      : network(used), kernels(used_kernels), pool(threads) {}

  const Network& network;
  const Kernels& kernels;
  ThreadPool& pool;
  const ForecastOptions* options = nullptr;
  PathPlan paths = {};
  GroupMemory memory = {};
  int output_steps = 0;  // steps of a patch that the first pass must compute

  void check_cancelled() const;
  // The values of all stored paths at one step, [path].
  float* path_step(int sequence, int step) const {
    return memory.paths + (std::size_t(sequence) * paths.path_steps + step) * paths.stored_paths;
  }
  // Where the distribution of one path's step beyond the exact ones is kept.
  StoredMixture stored(int sequence, int step, int path) const {
    const std::size_t at =
        (std::size_t(sequence) * paths.joined_steps() + step - paths.exact_steps) *
            paths.stored_paths +
        path;
    return {memory.mixtures + at * memory.mixture_stride,
            static_cast<std::size_t>(network.shape().num_components)};
  }
  // The distribution of one step of a head row, in the memory of thread `worker`.
  StepDistribution step_of(const float* head, int step, double loc, double scale, int worker,
                           ForecastRange range = {}) const noexcept {
    return network.step(head, step, loc, scale, range, memory.step_workspace(worker));
  }
  // Writes the row of a patch to predict whose values are known, `number` patches ahead.
  void read_known(const KnownFuture& future, int number, int sequence, ScalerState& state,
                  int row) const noexcept;
};

// Collects groups of rows for space-wise attention. append() splits the variates of one patch into
// groups of equal id, in variate order; `id_of(v)` and `row_of(v)` describe variate v. A negative
// row: the variate has none.
struct GroupList {
  int* rows = nullptr;
  SpaceGroup* groups = nullptr;
  int num_rows = 0, num_groups = 0;

  template <typename IdOf, typename RowOf>
  void append(int num_variates, const IdOf& id_of, const RowOf& row_of) noexcept {
    int* first = rows + num_rows;
    int count = 0;
    for (int v = 0; v < num_variates; ++v) {
      if (row_of(v) >= 0) first[count++] = v;
    }
    std::sort(first, first + count, [&](int a, int b) {
      const auto id_a = id_of(a), id_b = id_of(b);
      return id_a != id_b ? id_a < id_b : a < b;
    });
    for (int begin = 0; begin < count;) {
      int end = begin + 1;
      while (end < count && id_of(first[end]) == id_of(first[begin])) ++end;
      groups[num_groups++] = {first + begin, end - begin};
      begin = end;
    }
    for (int i = 0; i < count; ++i) first[i] = row_of(first[i]);
    num_rows += count;
  }
  std::span<const SpaceGroup> all() const { return {groups, static_cast<std::size_t>(num_groups)}; }
};

// Prepares every context of the group: network inputs, statistics, position factors.
void read_contexts(RunningCall& running, const SeriesGroup& group);

// Runs the contexts through the network, each followed by its query rows, if any. Afterwards
// memory.network.heads holds block_patches rows per sequence, in order.
void run_contexts(RunningCall& running, const SeriesGroup& group);

// Writes known future values into every stored path (zero past the horizon, as forecaster.py:
// round_ft_ev pads them).
void set_known_future(RunningCall& running, const SeriesGroup& group);

}  // namespace toto
