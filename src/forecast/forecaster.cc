#include "forecast/forecaster.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "base/size_class.h"
#include "base/stopwatch.h"
#include "forecast/outputs.h"

namespace toto {
namespace {

using Clock = std::chrono::steady_clock;

// Splits the variates of one patch into groups of equal id, in variate order. `id_of(v)` and
// `row_of(v)` describe variate v; rows and groups are appended.
template <typename IdOf, typename RowOf>
void append_groups(int num_variates, const IdOf& id_of, const RowOf& row_of, int* rows,
                   int& num_rows, SpaceGroup* groups, int& num_groups) noexcept {
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

}  // namespace

void Forecaster::run(std::span<const Job> batch, const ForecastOptions& options,
                     std::span<Forecast> out, Timings& timings, Trace* trace) {
  options_ = &options;
  paths_ = PathPlan(options, model_.config().patch_size);
  plan(batch, out);
  const bool whole_patch = trace != nullptr || paths_.decode_patches > 0;
  first_patch_steps_ = whole_patch ? model_.config().patch_size : options.horizon;
  const Plan* kept = plan_cache_ != nullptr ? planned() : nullptr;
  if (kept == nullptr) reserve_memory();
  std::span<SeriesPlan> rest(plans_);
  std::size_t num_groups = 0;
  int done = 0;
  while (!rest.empty()) {
    const Group group = take_group(rest, paths_);
    if (kept != nullptr) {
      state_ = kept->groups[num_groups].state;
    } else {
      arena_.start_handing_out();
      state_ = carve_state(arena_, group, paths_, model_, pool_.num_threads());
    }
    ++num_groups;
    const Clock::time_point start = Clock::now();
    prepare(group);
    prefill(group);
    first_patch(group, trace);
    timings.prefill += milliseconds_since(start);
    const Clock::time_point decode_start = Clock::now();
    decode(group);
    summarise(group);
    timings.decode += milliseconds_since(decode_start);
    done += static_cast<int>(group.series.size());
    if (options.progress) options.progress(done, static_cast<int>(batch.size()));
  }
}

// Decides everything about the series of a call but where their memory lies.
void Forecaster::plan(std::span<const Job> batch, std::span<Forecast> out) {
  const int patch = model_.config().patch_size;
  plans_.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [series, kept, origin] = batch[i];
    SeriesPlan& plan = plans_[i];
    plan = SeriesPlan();
    plan.series = series;
    plan.out = &out[i];
    if (kept != nullptr && kept->prepare(*series, origin, *options_, model_)) {
      plan.kept = kept;
      plan.first_token = kept->first_token();
    }
    plan.context =
        plan.kept != nullptr ? kept->shape() : context_shape(*series, options_->max_context, patch);
    plan.num_tokens = plan.context.num_patches + (model_.has_variate_labels() ? 1 : 0);
    plan.token_room = plan.num_tokens;
    plan.row_room = plan.num_tokens - plan.first_token;
    if (plan_cache_ != nullptr) {
      plan.token_room = size_class(plan.token_room);
      plan.row_room = size_class(plan.row_room);
    }
    plan.stream = options_->independent_streams ? stream_of(series->id) : 0;
    if (plan.num_tokens + paths_.decode_patches > Rotary::kMaxPositions) {
      fail(ErrorCode::invalid_argument,
           "context and horizon together are {} patches, at most {} are supported; shorten either",
           plan.num_tokens + paths_.decode_patches, Rotary::kMaxPositions);
    }
  }
}

// Makes the arena large enough for the largest group.
void Forecaster::reserve_memory() {
  std::size_t largest = 0;
  for (std::span<SeriesPlan> rest(plans_); !rest.empty();) {
    const Group group = take_group(rest, paths_);
    arena_.start_measuring();
    largest =
        std::max(largest, carve_state(arena_, group, paths_, model_, pool_.num_threads()).bytes);
  }
  arena_.reserve(largest);
}

// The kept plan for the series of this call, made if their shape is new. All plans share the arena:
// where its block is another since, their pieces are laid out again, which allocates nothing.
const Plan* Forecaster::planned() {
  key_.clear();
  for (const int number : {paths_.num_paths, paths_.path_steps, paths_.decode_patches}) {
    key_.push_back(number);
  }
  for (const SeriesPlan& plan : plans_) {
    key_.push_back(plan.series->num_variates);
    key_.push_back(plan.token_room);
    key_.push_back(plan.kept != nullptr ? plan.row_room : 0);
  }
  Plan* plan = plan_cache_->find(key_);
  if (plan != nullptr && plan->generation == arena_.generation()) return plan;
  reserve_memory();
  const bool is_new = plan == nullptr;
  if (is_new) {
    const std::string invalid = tuning_ != nullptr ? tuning_->take_invalid() : std::string();
    plan = &plan_cache_->add(key_, described_shape(), invalid);
  }
  std::size_t num_groups = 0;
  for (std::span<SeriesPlan> rest(plans_); !rest.empty(); ++num_groups) {
    const Group group = take_group(rest, paths_);
    if (num_groups == plan->groups.size()) plan->groups.emplace_back();
    PlannedGroup& planned = plan->groups[num_groups];
    State& state = planned.state;
    arena_.start_handing_out();
    state = carve_state(arena_, group, paths_, model_, pool_.num_threads());
    planned.prefixes.assign(state.prefixes, state.prefixes + group.num_sequences);
    planned.tails.assign(state.tails, state.tails + state.max_lane_rows);
    state.prefixes = planned.prefixes.data();
    state.tails = planned.tails.data();
  }
  plan->generation = arena_.generation();
  if (is_new && tuning_ != nullptr) tune(*plan);
  return plan;
}

// What the passes of a plan need to know, measured now rather than during a forecast.
void Forecaster::tune(const Plan& plan) {
  std::size_t number = 0;
  for (std::span<SeriesPlan> rest(plans_); !rest.empty(); ++number) {
    const Group group = take_group(rest, paths_);
    const State& state = plan.groups[number].state;
    const int rows = std::min(group.num_rows, state.max_rows);
    tuning_->prepare(rows, group.num_sequences, state.network);
    // The last layers see only the rows that are asked for.
    tuning_->prepare(group.num_sequences, group.num_sequences, state.network);
    if (paths_.decode_patches > 0) {
      const int lanes = std::min(group.num_sequences * paths_.num_paths, state.max_lane_rows);
      tuning_->prepare(lanes, lanes, state.network);
    }
  }
  tuning_->keep();
}

std::string Forecaster::described_shape() const {
  int variates = 0, tokens = 0;
  for (const SeriesPlan& plan : plans_) {
    variates += plan.series->num_variates;
    tokens = std::max(tokens, plan.token_room);
  }
  return fmt::format(
      "{} series, {} variates, up to {} patches of context, {} patches ahead, {} paths",
      plans_.size(), variates, tokens, paths_.decode_patches + 1, paths_.num_paths);
}

void Forecaster::check_cancelled() const {
  if (options_->cancelled && options_->cancelled())
    fail(ErrorCode::cancelled, "the forecast was cancelled");
}

void Forecaster::prepare(const Group& group) {
  const Config& config = model_.config();
  const int patch = config.patch_size;
  std::size_t value_at = 0, id_at = 0;
  for (SeriesPlan& plan : group.series) {
    if (plan.kept != nullptr) {
      take_kept(plan);
      continue;
    }
    const std::size_t padded = plan.context.padded(patch);
    plan.scaled = state_.values + value_at;
    plan.ids = state_.ids + id_at;
    write_context(*plan.series, plan.context, options_->missing, patch, state_.values + value_at,
                  state_.mask + value_at, state_.ids + id_at);
    for (int v = 0; v < plan.series->num_variates; ++v, value_at += padded) {
      const int sequence = plan.first_sequence + v;
      state_.scalers[sequence] = scale_context(
          config, {state_.values + value_at, padded}, {state_.mask + value_at, padded},
          state_.loc + std::size_t(sequence) * patch, state_.scale + std::size_t(sequence) * patch);
    }
    id_at += std::size_t(plan.series->num_variates) * plan.context.num_patches;
  }
  for (int token = group.first_token; token < group.max_tokens; ++token) {
    model_.rotary().prefill_factors(token,
                                    state_.rotary + token * model_.rotary().floats_per_position());
  }
}

// A session's context is prepared already; its keys and values are read and written where they are.
void Forecaster::take_kept(SeriesPlan& plan) {
  const std::size_t at = std::size_t(plan.first_sequence) * model_.config().patch_size;
  plan.scaled = plan.kept->scaled();
  plan.ids = plan.kept->ids();
  std::copy(plan.kept->scalers().begin(), plan.kept->scalers().end(),
            state_.scalers + plan.first_sequence);
  std::copy(plan.kept->loc().begin(), plan.kept->loc().end(), state_.loc + at);
  std::copy(plan.kept->scale().begin(), plan.kept->scale().end(), state_.scale + at);
  for (int v = 0; v < plan.series->num_variates; ++v) {
    state_.prefixes[plan.first_sequence + v] = plan.kept->prefix(v);
  }
}

void Forecaster::prefill(const Group& group) {
  for (const SeriesPlan& plan : group.series) {
    if (plan.kept != nullptr) plan.kept->begin();
  }
  // Long or wide series go through in pieces of time; keys and values of earlier pieces are cached.
  const int tokens_per_pass = group.num_rows <= state_.max_rows
                                  ? group.max_tokens
                                  : std::max(1, state_.max_rows / group.num_sequences);
  for (int first = group.first_token; first < group.max_tokens; first += tokens_per_pass) {
    check_cancelled();
    prefill_tokens(group, first, std::min(group.max_tokens, first + tokens_per_pass));
  }
  for (const SeriesPlan& plan : group.series) {
    if (plan.kept != nullptr) plan.kept->commit();
  }
}

// One pass over tokens [first_token, last_token) of every series of the group, kept ones left out.
void Forecaster::prefill_tokens(const Group& group, int first_token, int last_token) {
  const int patch = model_.config().patch_size, labels = model_.has_variate_labels() ? 1 : 0;
  int num_runs = 0, num_rows = 0, num_groups = 0, num_group_rows = 0;
  int num_output_groups = 0, num_output_rows = 0, num_outputs = 0;
  for (const SeriesPlan& plan : group.series) {
    const int variates = plan.series->num_variates, num_patches = plan.context.num_patches;
    const int begin = std::max(first_token, plan.first_token);
    const int end = std::min(last_token, plan.num_tokens);
    const int count = std::max(0, end - begin), series_row = num_rows;
    const bool wants_output = count > 0 && end == plan.num_tokens;
    const std::int64_t* ids = plan.ids;
    for (int v = 0; v < variates && count > 0; ++v) {
      const int sequence = plan.first_sequence + v;
      RowRun& run = state_.runs[num_runs++];
      run = {.first_row = num_rows,
             .num_rows = count,
             .tail = state_.prefixes[sequence],
             .tail_length = begin,
             .rotary = state_.rotary + begin * model_.rotary().floats_per_position(),
             .wants_output = wants_output};
      if (labels == 1 && begin == 0) {
        const bool exogenous = v >= variates - plan.series->num_exogenous;
        run.first_token = exogenous ? Token::exogenous_label : Token::target_label;
      }
      const float* context = plan.scaled + std::size_t(v) * num_patches * patch;
      for (int token = begin; token < end; ++token, ++num_rows) {
        float* row = state_.patches + std::size_t(num_rows) * patch;
        if (token < labels) {
          std::fill_n(row, patch, 0.0f);
          continue;
        }
        std::copy_n(context + std::size_t(token - labels) * patch, patch, row);
      }
    }
    for (int token = begin; token < end; ++token) {
      const int p = std::max(0, token - labels);
      append_groups(
          variates, [&](int v) { return ids[std::size_t(v) * num_patches + p]; },
          [&](int v) { return series_row + v * count + (token - begin); }, state_.group_rows,
          num_group_rows, state_.groups, num_groups);
    }
    if (wants_output) {
      append_groups(
          variates, [&](int v) { return ids[std::size_t(v) * num_patches + num_patches - 1]; },
          [&](int v) { return num_outputs + v; }, state_.output_group_rows, num_output_rows,
          state_.output_groups, num_output_groups);
      num_outputs += variates;
    }
  }
  model_.forward(
      {.runs = {state_.runs, static_cast<std::size_t>(num_runs)},
       .patches = state_.patches,
       .num_rows = num_rows,
       .groups = {state_.groups, static_cast<std::size_t>(num_groups)},
       .output_groups = {state_.output_groups, static_cast<std::size_t>(num_output_groups)},
       .num_outputs = num_outputs,
       .output_steps = first_patch_steps_},
      state_.network);
}

// Reports the first patch and draws its samples. Every sequence has its row of head outputs.
void Forecaster::first_patch(const Group& group, Trace* trace) {
  const Config& config = model_.config();
  const int patch = config.patch_size;
  const int steps = paths_.decode_patches > 0 ? patch : options_->horizon;
  for (const SeriesPlan& plan : group.series) {
    check_cancelled();
    std::atomic<bool> finite = true;
    pool_.run(plan.series->num_variates * steps, [&](int task, int worker) {
      const int v = task / steps, step = task % steps, sequence = plan.first_sequence + v;
      const float* raw = state_.network.heads + sequence * model_.head_stride() +
                         std::size_t(step) * config.params_per_step();
      const std::size_t at = std::size_t(sequence) * patch + step;
      const double* bias = model_.head_bias() + std::size_t(step) * config.params_per_step();
      const StudentMixture mixture = step_distribution(
          config, raw, bias, state_.loc[at], state_.scale[at], state_.step_workspace(worker));
      if (!mixture.valid()) finite = false;
      if (step < std::min(paths_.exact_steps, options_->horizon)) {
        write_exact(mixture, *options_, v, step, *plan.out);
      }
      if (paths_.num_paths == 0) return;
      float* paths = path_step(sequence, step);
      if (paths_.follows_mean) {
        paths[0] = without_extremes<float>(mixture.mean());
        return;
      }
      for (int path = 0; path < paths_.num_paths; ++path) {
        const auto words = random_words({.seed = options_->seed,
                                         .stream = plan.stream,
                                         .variate = static_cast<std::uint32_t>(v),
                                         .sample = static_cast<std::uint32_t>(path),
                                         .step = static_cast<std::uint32_t>(step)});
        paths[path] = without_extremes<float>(mixture.sample(words));
      }
    });
    if (!finite) fail_not_finite(*plan.series);
    if (trace != nullptr) {
      fill_trace(config, plan.series->num_variates, state_.network.heads, model_.head_stride(),
                 model_.head_bias(), state_.loc, state_.scale, *trace);
    }
  }
  set_known_future(group);
}

// Known variates are not forecast: every path holds what will come (zero past the horizon, as
// forecaster.py: round_ft_ev pads it).
void Forecaster::set_known_future(const Group& group) {
  if (paths_.num_paths == 0) return;
  for (const SeriesPlan& plan : group.series) {
    const Series& series = *plan.series;
    if (series.future_exogenous.empty()) continue;
    for (int x = 0; x < series.num_exogenous; ++x) {
      const int sequence = plan.first_sequence + series.num_variates - series.num_exogenous + x;
      for (int step = 0; step < paths_.path_steps; ++step) {
        const float value = step < options_->horizon
                                ? series.future_exogenous[std::size_t(x) * options_->horizon + step]
                                : 0.0f;
        std::fill_n(path_step(sequence, step), paths_.num_paths, value);
      }
    }
  }
}

// Runs all paths of all series through the decode steps, a chunk of paths at a time.
void Forecaster::decode(const Group& group) {
  if (paths_.decode_patches == 0) return;
  const Rotary& rotary = model_.rotary();
  for (std::size_t s = 0; s < group.series.size(); ++s) {
    for (int p = 0; p < paths_.decode_patches; ++p) {
      const int prefill = group.series[s].num_tokens;
      rotary.decode_factors(
          prefill + p, prefill,
          state_.decode_rotary + (s * paths_.decode_patches + p) * rotary.floats_per_position());
    }
  }
  int num_rows = 0;
  for (int s = 0; s < static_cast<int>(group.series.size()); ++s) {
    const int variates = group.series[s].series->num_variates;
    for (int path = 0; path < paths_.num_paths; ++path) {
      if (num_rows + variates > state_.max_lane_rows) {
        decode_lanes(group, num_rows);
        num_rows = 0;
      }
      for (int v = 0; v < variates; ++v) state_.lane_rows[num_rows++] = {s, v, path};
    }
  }
  decode_lanes(group, num_rows);
}

void Forecaster::decode_lanes(const Group& group, int num_rows) {
  for (int row = 0; row < num_rows;
       ++row) {  // fork: the cache is shared, only statistics are copied
    const LaneRow& lane = state_.lane_rows[row];
    const int sequence = group.series[lane.series].first_sequence + lane.variate;
    state_.lane_scalers[row] = state_.scalers[sequence];
  }
  int num_groups = 0, num_group_rows = 0;
  int row = 0;
  for (int s = 0; s < static_cast<int>(group.series.size()); ++s) {
    const SeriesPlan& plan = group.series[s];
    const int variates = plan.series->num_variates, num_patches = plan.context.num_patches;
    const std::int64_t* ids = plan.ids;
    for (; row < num_rows && state_.lane_rows[row].series == s; row += variates) {
      append_groups(
          variates, [&](int v) { return ids[std::size_t(v) * num_patches + num_patches - 1]; },
          [&](int v) { return row + v; }, state_.group_rows, num_group_rows, state_.groups,
          num_groups);
    }
  }
  const std::span<const SpaceGroup> groups(state_.groups, num_groups);

  const int patch = model_.config().patch_size;
  for (int p = 0; p < paths_.decode_patches; ++p) {
    check_cancelled();
    feed_patch(group, num_rows, p);
    for (int r = 0; r < num_rows; ++r) {
      const LaneRow& lane = state_.lane_rows[r];
      const SeriesPlan& plan = group.series[lane.series];
      state_.runs[r] = {
          .first_row = r,
          .num_rows = 1,
          .prefix = state_.prefixes[plan.first_sequence + lane.variate],
          .prefix_length = plan.num_tokens,
          .tail = state_.tails[r],
          .tail_length = p,
          .rotary = state_.decode_rotary + (std::size_t(lane.series) * paths_.decode_patches + p) *
                                               model_.rotary().floats_per_position(),
          .wants_output = true};
    }
    model_.forward({.runs = {state_.runs, static_cast<std::size_t>(num_rows)},
                    .patches = state_.patches,
                    .num_rows = num_rows,
                    .groups = groups,
                    .output_groups = groups,
                    .num_outputs = num_rows,
                    .output_steps = std::min(patch, options_->horizon - (p + 1) * patch)},
                   state_.network);
    read_patch(group, num_rows, p + 1);
  }
}

// Scales what each path said about `patch`: the network's next input.
void Forecaster::feed_patch(const Group& group, int num_rows, int patch) {
  const Config& config = model_.config();
  const int size = config.patch_size;
  pool_.run(num_rows, [&](int row, int worker) {
    const LaneRow& lane = state_.lane_rows[row];
    const int sequence = group.series[lane.series].first_sequence + lane.variate;
    float* values = state_.scratch + worker * state_.scratch_stride;
    for (int i = 0; i < size; ++i) values[i] = path_step(sequence, patch * size + i)[lane.path];
    const std::size_t at = std::size_t(row) * size;
    scale_patch<float>(config, state_.lane_scalers[row], values, nullptr, state_.patches + at,
                       state_.lane_loc + at, state_.lane_scale + at);
  });
}

// Draws each path's values of `patch` from the head's output, or takes the mean.
void Forecaster::read_patch(const Group& group, int num_rows, int patch) {
  const Config& config = model_.config();
  const int size = config.patch_size, first_step = patch * size;
  const int steps = std::min(size, options_->horizon - first_step);
  pool_.run(num_rows, [&](int row, int worker) {
    const LaneRow& lane = state_.lane_rows[row];
    const SeriesPlan& plan = group.series[lane.series];
    const Series& series = *plan.series;
    const bool known = !series.future_exogenous.empty() &&
                       lane.variate >= series.num_variates - series.num_exogenous;
    if (known) return;
    const float* raw = state_.network.heads + row * model_.head_stride();
    for (int i = 0; i < steps; ++i) {
      const std::size_t at = std::size_t(row) * size + i;
      const std::size_t params = std::size_t(i) * config.params_per_step();
      const StudentMixture mixture =
          step_distribution(config, raw + params, model_.head_bias() + params, state_.lane_loc[at],
                            state_.lane_scale[at], state_.step_workspace(worker));
      float& value = path_step(plan.first_sequence + lane.variate, first_step + i)[lane.path];
      if (paths_.follows_mean) {
        write_exact(mixture, *options_, lane.variate, first_step + i, *plan.out);
        value = without_extremes<float>(mixture.mean());
      } else {
        const auto words = random_words({.seed = options_->seed,
                                         .stream = plan.stream,
                                         .variate = static_cast<std::uint32_t>(lane.variate),
                                         .sample = static_cast<std::uint32_t>(lane.path),
                                         .step = static_cast<std::uint32_t>(first_step + i)});
        value = without_extremes<float>(mixture.sample(words));
      }
    }
  });
}

// Statistics over the paths for every step that was not reported exactly, and the paths themselves.
void Forecaster::summarise(const Group& group) {
  for (const SeriesPlan& plan : group.series) {
    const int variates = plan.series->num_variates, horizon = options_->horizon;
    const int sampled = horizon - paths_.exact_steps;
    pool_.run(variates * sampled, [&](int task, int worker) {
      const int v = task / sampled, step = paths_.exact_steps + task % sampled;
      const std::span<float> samples(state_.scratch + worker * state_.scratch_stride,
                                     paths_.num_paths);
      std::copy_n(path_step(plan.first_sequence + v, step), paths_.num_paths, samples.data());
      write_sampled(samples, *options_, v, step, *plan.out);
    });
    write_known_future(*plan.series, *options_, *plan.out);
    if (!options_->keep_samples) continue;
    for (int v = 0; v < variates; ++v) {
      float* out = plan.out->samples.data() + std::size_t(v) * paths_.num_paths * horizon;
      for (int step = 0; step < horizon; ++step) {
        const float* paths = path_step(plan.first_sequence + v, step);
        for (int path = 0; path < paths_.num_paths; ++path)
          out[std::size_t(path) * horizon + step] = paths[path];
      }
    }
  }
}

}  // namespace toto
