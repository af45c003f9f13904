// Decoder of quantile models: each pass predicts a block of patches through query rows; the medians
// are fed back as data for the next block. Nothing is drawn on the way: samples, if requested, are
// independent draws of each step.
#include <algorithm>
#include <atomic>

#include "base/random.h"
#include "forecast/decoder.h"
#include "forecast/outputs.h"

namespace toto {
namespace {

class MedianBlocks final : public Decoder {
 public:
  MedianBlocks(RunningCall& running, const ModelFacts& facts) : running_(running), facts_(facts) {}

  void start(const SeriesGroup& group, Trace* trace) override {
    run_contexts(running_, group);
    if (trace != nullptr) {
      const SeriesPlan& plan = group.series.front();
      const int variates = traced_variates(*plan.series, facts_);
      running_.network.trace(variates, running_.paths.block_patches, running_.memory.network,
                             running_.memory.loc, running_.memory.scale, *trace);
      trace->arrays.push_back(empty_quantile_trace(variates, running_.options->horizon, facts_));
    }
    set_known_future(running_, group);
    read_block(group, 0, running_.paths.block_patches, trace);
  }

  void finish(const SeriesGroup& group, Trace* trace) override {
    const int block = running_.paths.block_patches;
    const int num_patches = block + running_.paths.decode_patches;
    for (int first = block; first < num_patches; first += block) {
      running_.check_cancelled();
      const int patches = std::min(block, num_patches - first);
      run_block(group, first, patches);
      read_block(group, first, patches, trace);
    }
    for (const SeriesPlan& plan : group.series) {
      write_known_future(*plan.series, *running_.options, *plan.out);
    }
  }

 private:
  void read_block(const SeriesGroup& group, int first_patch, int num_patches, Trace* trace);
  void run_block(const SeriesGroup& group, int first_patch, int num_patches);

  RunningCall& running_;
  const ModelFacts& facts_;
};

// Writes the patches of a block to the outputs and stores their medians. The heads hold one row per
// sequence and patch.
void MedianBlocks::read_block(const SeriesGroup& group, int first_patch, int num_patches,
                              Trace* trace) {
  const GroupMemory& memory = running_.memory;
  const ForecastOptions& options = *running_.options;
  const int patch = running_.network.shape().patch, first_step = first_patch * patch;
  const bool fed_back =
      first_patch + num_patches < running_.paths.block_patches + running_.paths.decode_patches;
  const int steps = fed_back ? num_patches * patch : options.horizon - first_step;
  for (const SeriesPlan& plan : group.series) {
    std::atomic<bool> finite = true;
    // Known variates come last and are not forecast.
    running_.pool.run(num_forecast(*plan.series) * steps, [&](int task, int worker) {
      const int v = task / steps, i = task % steps, step = first_step + i;
      const int sequence = plan.first_sequence + v;
      const std::size_t at = std::size_t(sequence) * patch + i % patch;
      const std::size_t output = std::size_t(memory.runs[sequence].first_output) + i / patch;
      const StepDistribution distribution = running_.step_of(
          memory.network.heads + output * memory.network.head_stride, i % patch, memory.loc[at],
          memory.scale[at], worker, memory.scalers[sequence].range);
      if (!distribution.valid()) finite = false;
      if (fed_back) {
        *running_.path_step(sequence, step) = without_extremes<float>(distribution.quantile(0.5));
      }
      if (step >= options.horizon) return;
      write_exact(distribution, options, v, step, *plan.out);
      if (trace != nullptr) set_quantile_trace(distribution, v, step, facts_, *trace);
      for (int n = 0; n < plan.out->num_samples && !plan.out->samples.empty(); ++n) {
        const auto draw = without_extremes<float>(
            distribution.sample(random_words({.seed = options.seed,
                                              .stream = plan.stream,
                                              .variate = static_cast<std::uint32_t>(v),
                                              .sample = static_cast<std::uint32_t>(n),
                                              .step = static_cast<std::uint32_t>(step)})));
        plan.out->samples[(std::size_t(v) * plan.out->num_samples + n) * options.horizon + step] =
            unscaled(draw, v, *plan.out);
      }
    });
    if (!finite) fail_not_finite(*plan.series);
  }
}

// One pass over the previous block as data, followed by query rows for all but the first patch of
// the next block. Keys and values are appended to the context's; the next pass overwrites those of
// query rows.
void MedianBlocks::run_block(const SeriesGroup& group, int first_patch, int num_patches) {
  const GroupMemory& memory = running_.memory;
  const ModelShape& shape = running_.network.shape();
  const int patch = shape.patch, width = shape.input_width;
  const int fed = running_.paths.block_patches, queries = num_patches - 1;
  const int rows = fed + queries, fed_before = first_patch - fed;
  const std::size_t positions = running_.paths.decode_positions();
  GroupList groups{memory.group_rows, memory.groups};
  GroupList output_groups{memory.output_group_rows, memory.output_groups};
  std::size_t num_constants = 0;
  int num_outputs = 0;
  for (std::size_t s = 0; s < group.series.size(); ++s) {
    const SeriesPlan& plan = group.series[s];
    const int variates = plan.series->num_variates, series_row = plan.first_sequence * rows;
    const int begin = plan.num_tokens + fed_before;
    float* factors = memory.decode_positions + s * positions * shape.position_floats;
    for (int i = 0; i < rows; ++i) {
      running_.network.position_factors(begin + i, begin + rows - 1,
                                        plan.num_tokens + running_.paths.query_rows() - 1,
                                        factors + std::size_t(i) * shape.position_floats);
    }
    for (int v = 0; v < variates; ++v) {
      const int sequence = plan.first_sequence + v, first_row = sequence * rows;
      memory.runs[sequence] = {.first_row = first_row,
                               .num_rows = rows,
                               .tail = memory.prefixes[sequence],
                               .tail_length = plan.rows_before(v, plan.num_tokens) + fed_before,
                               .positions = factors,
                               .num_outputs = num_patches,
                               .first_output = sequence * num_patches};
      const std::size_t at = std::size_t(sequence) * patch;
      // stored_paths is 1, so steps are contiguous.
      const float* values = running_.path_step(sequence, fed_before * patch);
      running_.network.read_block(
          memory.scalers[sequence], {values, static_cast<std::size_t>(fed) * patch},
          memory.rows + std::size_t(first_row) * width, memory.loc + at, memory.scale + at);
      const KnownFuture future = known_future(*plan.series, v, plan.out->scale[v]);
      ScalerState state = memory.scalers[sequence];
      for (int i = 0; i < queries; ++i) {
        const int row = first_row + fed + i;
        if (!future.empty()) {
          running_.read_known(future, first_patch + i, sequence, state, row);
          continue;
        }
        std::fill_n(memory.rows + std::size_t(row) * width, width, 0.0f);
        memory.constants[num_constants++] = {row, running_.network.query_constant()};
      }
    }
    // The reference gives row i of every later pass the id of patch i of the context: variates
    // whose context begins with a gap part from the others there.
    const auto id_at = [&](int v, int i) {
      const bool gap = plan.places != nullptr && i < plan.context.num_patches &&
                       plan.ids[std::size_t(v) * plan.context.num_patches + i] == kNoPatch;
      return gap ? kNoPatch : last_id(*plan.series, v);
    };
    for (int i = 0; i < rows; ++i) {
      groups.append(
          variates, [&](int v) { return id_at(v, i); },
          [&](int v) { return series_row + v * rows + i; });
    }
    for (int i = 0; i < num_patches; ++i) {
      output_groups.append(
          variates, [&](int v) { return id_at(v, rows - num_patches + i); },
          [&](int v) { return num_outputs + v * num_patches + i; });
    }
    num_outputs += variates * num_patches;
  }
  running_.network.forward({.runs = {memory.runs, static_cast<std::size_t>(group.num_sequences)},
                            .inputs = memory.rows,
                            .num_rows = group.num_sequences * rows,
                            .constants = {memory.constants, num_constants},
                            .groups = groups.all(),
                            .output_groups = output_groups.all(),
                            .num_outputs = num_outputs,
                            .output_steps = patch},
                           running_.memory.network);
}

}  // namespace

std::unique_ptr<Decoder> make_median_blocks(RunningCall& running, const ModelFacts& facts) {
  return std::make_unique<MedianBlocks>(running, facts);
}

}  // namespace toto
