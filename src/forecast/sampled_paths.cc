// Decoder of models with a sampling head: one patch per pass; every path feeds back its own draws,
// or the single path its means. Paths share the keys and values of their context and append their
// own. Unless samples were asked for, the paths' distributions are kept, and the answer beyond the
// first patch is their average.
#include <algorithm>
#include <atomic>

#include "base/random.h"
#include "forecast/decoder.h"
#include "forecast/outputs.h"

namespace toto {
namespace {

class SampledPaths final : public Decoder {
 public:
  explicit SampledPaths(RunningCall& running) : running_(running) {}

  void start(const SeriesGroup& group, Trace* trace) override {
    run_contexts(running_, group);
    first_patch(group, trace);
    set_known_future(running_, group);
  }

  void finish(const SeriesGroup& group, Trace* /*trace*/) override {
    decode(group);
    summarise(group);
  }

 private:
  void first_patch(const SeriesGroup& group, Trace* trace);
  void decode(const SeriesGroup& group);
  void decode_lanes(const SeriesGroup& group, int num_rows);
  void feed_patch(const SeriesGroup& group, int num_rows, int patch);
  void read_patch(const SeriesGroup& group, int num_rows, int patch);
  void summarise(const SeriesGroup& group);
  void write_samples_of_steps(const SeriesPlan& plan);
  void write_averages(const SeriesPlan& plan);

  float drawn(const StepDistribution& distribution, const SeriesPlan& plan, int variate, int path,
              int step) const noexcept {
    const auto words = random_words({.seed = running_.options->seed,
                                     .stream = plan.stream,
                                     .variate = static_cast<std::uint32_t>(variate),
                                     .sample = static_cast<std::uint32_t>(path),
                                     .step = static_cast<std::uint32_t>(step)});
    return without_extremes<float>(distribution.sample(words));
  }

  RunningCall& running_;
};

// Writes the first patch to the outputs and draws its samples. The heads hold one row per sequence.
void SampledPaths::first_patch(const SeriesGroup& group, Trace* trace) {
  const GroupMemory& memory = running_.memory;
  const PathPlan& paths = running_.paths;
  const ForecastOptions& options = *running_.options;
  const int patch = running_.network.shape().patch;
  const int steps = paths.decode_patches > 0 ? patch : options.horizon;
  for (const SeriesPlan& plan : group.series) {
    running_.check_cancelled();
    std::atomic<bool> finite = true;
    running_.pool.run(plan.series->num_variates * steps, [&](int task, int worker) {
      const int v = task / steps, step = task % steps, sequence = plan.first_sequence + v;
      const std::size_t at = std::size_t(sequence) * patch + step;
      const StepDistribution distribution =
          running_.step_of(memory.network.heads + sequence * memory.network.head_stride, step,
                           memory.loc[at], memory.scale[at], worker);
      if (!distribution.valid()) finite = false;
      if (step < std::min(paths.exact_steps, options.horizon)) {
        write_exact(distribution, options, v, step, *plan.out);
      }
      if (paths.num_paths == 0) return;
      float* values = running_.path_step(sequence, step);
      if (paths.follows_mean) {
        values[0] = without_extremes<float>(distribution.mean());
        return;
      }
      for (int path = 0; path < paths.num_paths; ++path) {
        values[path] = drawn(distribution, plan, v, path, step);
      }
    });
    if (!finite) fail_not_finite(*plan.series);
    if (trace != nullptr) {
      running_.network.trace(plan.series->num_variates, 1, memory.network, memory.loc, memory.scale,
                             *trace);
    }
  }
}

// Runs all paths of all series through the decode steps, a chunk of paths at a time.
void SampledPaths::decode(const SeriesGroup& group) {
  const GroupMemory& memory = running_.memory;
  const PathPlan& paths = running_.paths;
  if (paths.decode_patches == 0) return;
  const std::size_t floats = running_.network.shape().position_floats;
  for (std::size_t s = 0; s < group.series.size(); ++s) {
    for (int p = 0; p < paths.decode_patches; ++p) {
      const int tokens = group.series[s].num_tokens;
      running_.network.position_factors(
          tokens + p, tokens + p, tokens - 1,
          memory.decode_positions + (s * paths.decode_patches + p) * floats);
    }
  }
  int num_rows = 0;
  for (int s = 0; s < static_cast<int>(group.series.size()); ++s) {
    const int variates = group.series[s].series->num_variates;
    for (int path = 0; path < paths.num_paths; ++path) {
      if (num_rows + variates > memory.max_lane_rows) {
        decode_lanes(group, num_rows);
        num_rows = 0;
      }
      for (int v = 0; v < variates; ++v) memory.lane_rows[num_rows++] = {s, v, path};
    }
  }
  decode_lanes(group, num_rows);
}

// Decodes `num_rows` lanes to the end of the horizon. Each pass appends one position to the tail of
// every lane.
void SampledPaths::decode_lanes(const SeriesGroup& group, int num_rows) {
  const GroupMemory& memory = running_.memory;
  const PathPlan& paths = running_.paths;
  // Fork: the context's cache is shared, only the statistics are copied.
  for (int row = 0; row < num_rows; ++row) {
    const LaneRow& lane = memory.lane_rows[row];
    const int sequence = group.series[lane.series].first_sequence + lane.variate;
    memory.lane_scalers[row] = memory.scalers[sequence];
  }
  GroupList groups{memory.group_rows, memory.groups};
  int row = 0;
  for (int s = 0; s < static_cast<int>(group.series.size()); ++s) {
    const SeriesPlan& plan = group.series[s];
    const int variates = plan.series->num_variates, num_patches = plan.context.num_patches;
    for (; row < num_rows && memory.lane_rows[row].series == s; row += variates) {
      groups.append(
          variates, [&](int v) { return plan.ids[std::size_t(v + 1) * num_patches - 1]; },
          [&](int v) { return row + v; });
    }
  }

  const int patch = running_.network.shape().patch;
  const std::size_t floats = running_.network.shape().position_floats;
  for (int p = 0; p < paths.decode_patches; ++p) {
    running_.check_cancelled();
    feed_patch(group, num_rows, p);
    for (int r = 0; r < num_rows; ++r) {
      const LaneRow& lane = memory.lane_rows[r];
      const SeriesPlan& plan = group.series[lane.series];
      memory.runs[r] = {.first_row = r,
                        .num_rows = 1,
                        .prefix = memory.prefixes[plan.first_sequence + lane.variate],
                        .prefix_length = plan.num_tokens,
                        .tail = memory.tails[r],
                        .tail_length = p,
                        .positions = memory.decode_positions +
                                     (std::size_t(lane.series) * paths.decode_patches + p) * floats,
                        .num_outputs = 1};
    }
    running_.network.forward(
        {.runs = {memory.runs, static_cast<std::size_t>(num_rows)},
         .inputs = memory.rows,
         .num_rows = num_rows,
         .groups = groups.all(),
         .output_groups = groups.all(),
         .num_outputs = num_rows,
         .output_steps = std::min(patch, running_.options->horizon - (p + 1) * patch)},
        running_.memory.network);
    read_patch(group, num_rows, p + 1);
  }
}

// Writes the network's next input: each path's values of `patch`.
void SampledPaths::feed_patch(const SeriesGroup& group, int num_rows, int patch) {
  const GroupMemory& memory = running_.memory;
  const int size = running_.network.shape().patch, width = running_.network.shape().input_width;
  running_.pool.run(num_rows, [&](int row, int worker) {
    const LaneRow& lane = memory.lane_rows[row];
    const int sequence = group.series[lane.series].first_sequence + lane.variate;
    float* values = memory.scratch + worker * memory.scratch_stride;
    for (int i = 0; i < size; ++i) {
      values[i] = running_.path_step(sequence, patch * size + i)[lane.path];
    }
    const std::size_t at = std::size_t(row) * size;
    running_.network.read_patch(memory.lane_scalers[row], values,
                                memory.rows + std::size_t(row) * width, memory.lane_loc + at,
                                memory.lane_scale + at);
  });
}

// Draws each path's values of `patch` from the head's output, or takes the mean.
void SampledPaths::read_patch(const SeriesGroup& group, int num_rows, int patch) {
  const GroupMemory& memory = running_.memory;
  const ForecastOptions& options = *running_.options;
  const int size = running_.network.shape().patch, first_step = patch * size;
  const int steps = std::min(size, options.horizon - first_step);
  running_.pool.run(num_rows, [&](int row, int worker) {
    const LaneRow& lane = memory.lane_rows[row];
    const SeriesPlan& plan = group.series[lane.series];
    if (is_known(*plan.series, lane.variate)) return;
    const float* head = memory.network.heads + row * memory.network.head_stride;
    for (int i = 0; i < steps; ++i) {
      const std::size_t at = std::size_t(row) * size + i;
      const StepDistribution distribution =
          running_.step_of(head, i, memory.lane_loc[at], memory.lane_scale[at], worker);
      const int sequence = plan.first_sequence + lane.variate;
      float& value = running_.path_step(sequence, first_step + i)[lane.path];
      if (running_.paths.follows_mean) {
        write_exact(distribution, options, lane.variate, first_step + i, *plan.out);
        value = without_extremes<float>(distribution.mean());
      } else {
        value = drawn(distribution, plan, lane.variate, lane.path, first_step + i);
      }
      if (running_.paths.joins) {
        running_.stored(sequence, first_step + i, lane.path).store(*distribution.mixture());
      }
    }
  });
}

// Statistics over the drawn values of each step that is not exact.
void SampledPaths::write_samples_of_steps(const SeriesPlan& plan) {
  const GroupMemory& memory = running_.memory;
  const PathPlan& paths = running_.paths;
  const int sampled = running_.options->horizon - paths.exact_steps;
  running_.pool.run(plan.series->num_variates * sampled, [&](int task, int worker) {
    const int v = task / sampled, step = paths.exact_steps + task % sampled;
    const std::span<float> samples(memory.scratch + worker * memory.scratch_stride,
                                   paths.num_paths);
    std::copy_n(running_.path_step(plan.first_sequence + v, step), paths.num_paths, samples.data());
    write_sampled(samples, *running_.options, v, step, *plan.out);
  });
}

// The average of the paths' distributions at each step that is not exact. A path whose distribution
// is not finite is left out, like the draws that without_extremes() replaces.
void SampledPaths::write_averages(const SeriesPlan& plan) {
  const GroupMemory& memory = running_.memory;
  const PathPlan& paths = running_.paths;
  const int joined_steps = running_.options->horizon - paths.exact_steps;
  const int count = plan.series->num_variates * joined_steps;
  std::atomic<bool> finite = true;
  running_.pool.run(memory.num_joined, [&](int slot, int /*worker*/) {
    for (int task = slot; task < count; task += memory.num_joined) {
      const int v = task / joined_steps, step = paths.exact_steps + task % joined_steps;
      if (is_known(*plan.series, v)) continue;
      JoinedMixture joined(memory.joined(slot, paths.num_paths), running_.kernels);
      for (int path = 0; path < paths.num_paths; ++path) {
        joined.add(running_.stored(plan.first_sequence + v, step, path));
      }
      joined.finish();
      if (!joined.valid()) finite = false;
      write_joined(joined, *running_.options, v, step, *plan.out);
    }
  });
  if (!finite) fail_not_finite(*plan.series);
}

// Writes every step that is not exact, and the paths if requested.
void SampledPaths::summarise(const SeriesGroup& group) {
  const PathPlan& paths = running_.paths;
  const ForecastOptions& options = *running_.options;
  for (const SeriesPlan& plan : group.series) {
    const int variates = plan.series->num_variates, horizon = options.horizon;
    if (paths.joins) {
      running_.check_cancelled();
      write_averages(plan);
    } else {
      write_samples_of_steps(plan);
    }
    for (int v = 0; v < variates && !plan.out->samples.empty(); ++v) {
      float* out = plan.out->samples.data() + std::size_t(v) * paths.num_paths * horizon;
      for (int step = 0; step < horizon; ++step) {
        const float* values = running_.path_step(plan.first_sequence + v, step);
        for (int path = 0; path < paths.num_paths; ++path)
          out[std::size_t(path) * horizon + step] = unscaled(values[path], v, *plan.out);
      }
    }
    write_known_future(*plan.series, options, *plan.out);
  }
}

}  // namespace

std::unique_ptr<Decoder> make_sampled_paths(RunningCall& running) {
  return std::make_unique<SampledPaths>(running);
}

}  // namespace toto
