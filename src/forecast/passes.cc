#include "forecast/passes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace toto {
namespace {

// Uses a context that its session has read already; its keys and values are not copied.
void take_kept(RunningCall& running, SeriesPlan& plan) {
  const GroupMemory& memory = running.memory;
  const std::size_t at = std::size_t(plan.first_sequence) * running.network.shape().patch;
  plan.inputs = plan.kept->inputs();
  plan.ids = plan.kept->ids();
  std::copy(plan.kept->scalers().begin(), plan.kept->scalers().end(),
            memory.scalers + plan.first_sequence);
  std::copy(plan.kept->loc().begin(), plan.kept->loc().end(), memory.loc + at);
  std::copy(plan.kept->scale().begin(), plan.kept->scale().end(), memory.scale + at);
  for (int v = 0; v < plan.series->num_variates; ++v) {
    memory.prefixes[plan.first_sequence + v] = plan.kept->prefix(v);
  }
}

// Counts the patches that have a row.
void find_places(SeriesPlan& plan, int* places) {
  plan.places = places;
  const int num_patches = plan.context.num_patches;
  for (int v = 0; v < plan.series->num_variates; ++v) {
    const std::int64_t* ids = plan.ids + std::size_t(v) * num_patches;
    *places++ = 0;
    for (int p = 0; p < num_patches; ++p, ++places) {
      *places = places[-1] + (ids[p] == kNoPatch ? 0 : 1);
    }
  }
}

// One pass over tokens [first_token, last_token) of every series of the group, except kept ones.
// The query rows of a series follow its last token.
void run_tokens(RunningCall& running, const SeriesGroup& group, int first_token, int last_token) {
  const GroupMemory& memory = running.memory;
  const ModelShape& shape = running.network.shape();
  const int width = shape.input_width, leading = shape.leading_rows;
  GroupList groups{memory.group_rows, memory.groups};
  GroupList output_groups{memory.output_group_rows, memory.output_groups};
  int num_runs = 0, num_rows = 0, num_outputs = 0;
  std::size_t num_constants = 0;
  for (const SeriesPlan& plan : group.series) {
    const int variates = plan.series->num_variates, num_patches = plan.context.num_patches;
    const int begin = std::max(first_token, plan.first_token);
    const int end = std::min(last_token, plan.num_tokens);
    if (begin >= end) continue;
    const bool at_end = end == plan.num_tokens;
    const int queries = at_end ? running.paths.query_rows() : 0;
    const int first_run = num_runs;
    const auto has_row = [&](int v, int token) {
      return token >= end || plan.rows_before(v, token + 1) > plan.rows_before(v, token);
    };
    for (int v = 0; v < variates; ++v) {
      const int sequence = plan.first_sequence + v, before = plan.rows_before(v, begin);
      const int count = plan.rows_before(v, end) - before + queries;
      const int outputs = at_end ? queries + (has_row(v, end - 1) ? 1 : 0) : 0;
      RowRun& run = memory.runs[num_runs++];
      run = {.first_row = num_rows,
             .num_rows = count,
             .tail = memory.prefixes[sequence],
             .tail_length = before,
             .positions = memory.positions + std::size_t(begin) * shape.position_floats,
             .num_outputs = outputs,
             .first_output = num_outputs};
      num_outputs += outputs;
      if (plan.places != nullptr) run.places = memory.row_places + num_rows;
      const bool exogenous = v >= variates - plan.series->num_exogenous;
      const float* context = plan.inputs + std::size_t(v) * num_patches * width;
      const KnownFuture future = known_future(*plan.series, v, plan.out->scale[v]);
      ScalerState state = memory.scalers[sequence];
      for (int token = begin; token < end + queries; ++token) {
        if (!has_row(v, token)) continue;
        if (plan.places != nullptr) memory.row_places[num_rows] = token - begin;
        float* row = memory.rows + std::size_t(num_rows) * width;
        if (token >= leading && token < end) {
          std::copy_n(context + std::size_t(token - leading) * width, width, row);
        } else if (token >= end && !future.empty()) {
          running.read_known(future, token - end, sequence, state, num_rows);
        } else {
          std::fill_n(row, width, 0.0f);
          memory.constants[num_constants++] = {
              num_rows, token < leading ? running.network.leading_constant(exogenous)
                                        : running.network.query_constant()};
        }
        ++num_rows;
      }
    }
    const RowRun* runs = memory.runs + first_run;
    const auto id_at = [&](int v, int token) {
      return token >= end && at_end
                 ? last_id(*plan.series, v)
                 : plan.ids[std::size_t(v) * num_patches + std::max(token - leading, 0)];
    };
    for (int token = begin; token < end + queries; ++token) {
      groups.append(
          variates, [&](int v) { return id_at(v, token); },
          [&](int v) {
            if (!has_row(v, token)) return -1;
            const int rows = token < end ? plan.rows_before(v, token) - plan.rows_before(v, begin)
                                         : runs[v].num_rows - (end + queries - token);
            return runs[v].first_row + rows;
          });
    }
    for (int token = end - 1; at_end && token < end + queries; ++token) {
      output_groups.append(
          variates, [&](int v) { return id_at(v, token); },
          [&](int v) {
            if (!has_row(v, token)) return -1;
            return runs[v].first_output + runs[v].num_outputs - (end + queries - token);
          });
    }
  }
  running.network.forward({.runs = {memory.runs, static_cast<std::size_t>(num_runs)},
                           .inputs = memory.rows,
                           .num_rows = num_rows,
                           .constants = {memory.constants, num_constants},
                           .groups = groups.all(),
                           .output_groups = output_groups.all(),
                           .num_outputs = num_outputs,
                           .output_steps = running.output_steps},
                          running.memory.network);
}

}  // namespace

void RunningCall::check_cancelled() const {
  if (options->cancelled && options->cancelled())
    fail(ErrorCode::cancelled, "the forecast was cancelled");
}

void RunningCall::read_known(const KnownFuture& future, int number, int sequence,
                             ScalerState& state, int row) const noexcept {
  const ModelShape& shape = network.shape();
  const std::size_t first = std::size_t(number) * shape.patch;
  for (int i = 0; i < shape.patch; ++i) {  // nothing is known past the horizon
    memory.scratch[i] = first + i < future.size() ? future[first + i] : NAN;
  }
  const std::size_t at = std::size_t(sequence) * shape.patch;  // a known variate's are not used
  network.read_known(state, memory.scratch, memory.rows + std::size_t(row) * shape.input_width,
                     memory.loc + at, memory.scale + at);
}

void read_contexts(RunningCall& running, const SeriesGroup& group) {
  const GroupMemory& memory = running.memory;
  const ModelShape& shape = running.network.shape();
  const int patch = shape.patch;
  std::size_t patch_at = 0;
  for (SeriesPlan& plan : group.series) {
    if (plan.kept != nullptr) {
      take_kept(running, plan);
      continue;
    }
    const std::size_t num_patches = plan.context.num_patches;
    const std::size_t padded = num_patches * patch, room = num_patches * shape.input_width;
    float* inputs = memory.inputs + patch_at * shape.input_width;
    std::uint8_t* mask = memory.mask + patch_at * patch;
    plan.inputs = inputs;
    plan.ids = memory.ids + patch_at;
    write_context(*plan.series, plan.context, running.options->missing, plan.out->scale, patch,
                  room, inputs, mask, memory.ids + patch_at);
    const ForecastOptions& options = *running.options;
    for (int v = 0; v < plan.series->num_variates; ++v) {
      const int sequence = plan.first_sequence + v;
      const std::size_t at = std::size_t(sequence) * patch;
      memory.scalers[sequence] = running.network.read_context(
          {inputs + v * room, room}, {mask + v * padded, padded},
          {.min_observed = options.min_observed,
           .cap = options.cap,
           .known_future = known_future(*plan.series, v, plan.out->scale[v])},
          memory.loc + at, memory.scale + at);
    }
    patch_at += plan.series->num_variates * num_patches;
  }
  int* places = memory.places;
  for (SeriesPlan& plan : group.series) {
    if (!shape.skips_gaps) break;
    find_places(plan, places);
    places += std::size_t(plan.series->num_variates) * (plan.context.num_patches + 1);
  }
  const int last = group.max_tokens + running.paths.query_rows() - 1;
  for (int token = group.first_token; token <= last; ++token) {
    running.network.position_factors(token, last, last,
                                     memory.positions + std::size_t(token) * shape.position_floats);
  }
}

void run_contexts(RunningCall& running, const SeriesGroup& group) {
  for (const SeriesPlan& plan : group.series) {
    if (plan.kept != nullptr) plan.kept->begin();
  }
  // Long or wide series are split along time; keys and values of earlier pieces are in the cache.
  const int queries = running.paths.query_rows(), max_rows = running.memory.max_rows;
  const int tokens_per_pass = group.num_rows + group.num_sequences * queries <= max_rows
                                  ? group.max_tokens
                                  : std::max(1, max_rows / group.num_sequences - queries);
  for (int first = group.first_token; first < group.max_tokens; first += tokens_per_pass) {
    running.check_cancelled();
    run_tokens(running, group, first, std::min(group.max_tokens, first + tokens_per_pass));
  }
  for (const SeriesPlan& plan : group.series) {
    if (plan.kept != nullptr) plan.kept->commit();
  }
}

void set_known_future(RunningCall& running, const SeriesGroup& group) {
  if (running.paths.stored_paths == 0) return;
  const int horizon = running.options->horizon;
  for (const SeriesPlan& plan : group.series) {
    const Series& series = *plan.series;
    if (series.future_exogenous.empty()) continue;
    for (int x = 0; x < series.num_exogenous; ++x) {
      const int v = series.num_variates - series.num_exogenous + x;
      const int sequence = plan.first_sequence + v;
      for (int step = 0; step < running.paths.path_steps; ++step) {
        const float value = step < horizon
                                ? scaled(series.future_exogenous[std::size_t(x) * horizon + step],
                                         plan.out->scale[v])
                                : 0.0f;
        std::fill_n(running.path_step(sequence, step), running.paths.stored_paths, value);
      }
    }
  }
}

}  // namespace toto
