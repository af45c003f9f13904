// The passes of one call: what decoders share. Contexts are read and run through the network once,
// in pieces where they are long; decoders then go on from there.
#pragma once

#include <cstddef>

#include "base/threads.h"
#include "forecast/plan.h"
#include "forecast/state.h"
#include "model/architecture.h"
#include "toto/toto.h"

namespace toto {

// One call, and the memory of the group of series it is at. Not thread-safe.
struct Running {
  Running(const Network& used, ThreadPool& threads) : network(used), pool(threads) {}

  const Network& network;
  ThreadPool& pool;
  const ForecastOptions* options = nullptr;
  PathPlan paths = {};
  State state = {};
  int output_steps = 0;  // of a patch, that the first pass is asked for

  void check_cancelled() const;
  // [path] of one step.
  float* path_step(int sequence, int step) const {
    return state.paths + (std::size_t(sequence) * paths.path_steps + step) * paths.stored_paths;
  }
  // Where the network answers with something else than finite numbers it must not pass for a
  // forecast.
  StepDistribution step_of(const float* head, int step, double loc, double scale,
                           int worker) const noexcept {
    return network.step(head, step, loc, scale, state.step_workspace(worker));
  }
};

// Splits the variates of one patch into groups of equal id, in variate order. `id_of(v)` and
// `row_of(v)` describe variate v; rows and groups are appended.
struct GroupList {
  int* rows = nullptr;
  SpaceGroup* groups = nullptr;
  int num_rows = 0, num_groups = 0;

  template <typename IdOf, typename RowOf>
  void append(int num_variates, const IdOf& id_of, const RowOf& row_of) noexcept {
    int* first = rows + num_rows;
    for (int v = 0; v < num_variates; ++v) first[v] = v;
    std::sort(first, first + num_variates, [&](int a, int b) {
      const auto id_a = id_of(a), id_b = id_of(b);
      return id_a != id_b ? id_a < id_b : a < b;
    });
    for (int begin = 0; begin < num_variates;) {
      int end = begin + 1;
      while (end < num_variates && id_of(first[end]) == id_of(first[begin])) ++end;
      groups[num_groups++] = {first + begin, end - begin};
      begin = end;
    }
    for (int v = 0; v < num_variates; ++v) first[v] = row_of(first[v]);
    num_rows += num_variates;
  }
  std::span<const SpaceGroup> all() const { return {groups, static_cast<std::size_t>(num_groups)}; }
};

// Reads every context of the group: what the network reads, statistics, factors of positions.
void read_contexts(Running& running, const Group& group);

// Runs the contexts through the network, each followed by its query rows, where there are some.
// Afterwards state.network.heads holds block_patches rows for every sequence, in order.
void run_contexts(Running& running, const Group& group);

// Known variates are not forecast: every stored path holds what will come (zero past the horizon,
// as forecaster.py: round_ft_ev pads it).
void set_known_future(Running& running, const Group& group);

// Whether a variate of a series has a known future.
bool is_known(const Series& series, int variate) noexcept;

}  // namespace toto
