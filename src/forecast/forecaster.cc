#include "forecast/forecaster.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/random.h"
#include "base/size_class.h"
#include "base/stopwatch.h"

namespace toto {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Forecaster::Forecaster(const Architecture& architecture, const Network& network,
                       const Kernels& kernels, ThreadPool& pool, PlanCache* plans, Tuning* tuning)
    : facts_(architecture.facts()),
      running_(network, kernels, pool),
      plan_cache_(plans),
      tuning_(tuning) {
  switch (architecture.decoder()) {
    case DecoderKind::sampled_paths:
      decoder_ = make_sampled_paths(running_);
      break;
    case DecoderKind::median_blocks:
      decoder_ = make_median_blocks(running_, facts_);
      break;
  }
}

// Groups run one after the other in the same memory; a cached plan saves measuring and dividing it.
void Forecaster::run(std::span<const BatchItem> batch, const ForecastOptions& options,
                     std::span<Forecast> out, Timings& timings, Trace* trace) {
  running_.options = &options;
  running_.paths = PathPlan(options, facts_);
  path_bytes_ = static_cast<std::size_t>(path_bytes(1, options, facts_));
  plan(batch, out);
  const bool whole_patch = trace != nullptr || options.horizon > facts_.patch;
  running_.output_steps = whole_patch ? facts_.patch : options.horizon;
  const MemoryPlan* kept = plan_cache_ != nullptr ? planned() : nullptr;
  if (kept == nullptr) reserve_memory();
  std::span<SeriesPlan> rest(plans_);
  std::size_t num_groups = 0;
  int done = 0;
  while (!rest.empty()) {
    const SeriesGroup group = take_group(rest, path_bytes_);
    if (kept != nullptr) {
      running_.memory = kept->groups[num_groups].memory;
    } else {
      arena_.start_handing_out();
      running_.memory = carved(group);
    }
    ++num_groups;
    const Clock::time_point start = Clock::now();
    read_contexts(running_, group);
    decoder_->start(group, trace);
    timings.prefill += milliseconds_since(start);
    const Clock::time_point decode_start = Clock::now();
    decoder_->finish(group, trace);
    timings.decode += milliseconds_since(decode_start);
    done += static_cast<int>(group.series.size());
    if (options.progress) options.progress(done, static_cast<int>(batch.size()));
  }
}

GroupMemory Forecaster::carved(const SeriesGroup& group) {
  return carve_memory(arena_, group, running_.paths, running_.network, running_.pool.num_threads());
}

// Decides everything about the series of a call except the layout of their memory.
void Forecaster::plan(std::span<const BatchItem> batch, std::span<Forecast> out) {
  const int leading = running_.network.shape().leading_rows;
  plans_.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [series, kept, origin] = batch[i];
    SeriesPlan& plan = plans_[i];
    plan = SeriesPlan();
    plan.series = series;
    plan.out = &out[i];
    if (kept != nullptr && kept->prepare(*series, origin, *running_.options, plan.out->scale,
                                         running_.paths.context_room, running_.network, facts_)) {
      plan.kept = kept;
      plan.first_token = kept->first_token();
    }
    plan.context = plan.kept != nullptr
                       ? kept->shape()
                       : context_shape(*series, running_.options->max_context, facts_);
    plan.num_tokens = plan.context.num_patches + leading;
    plan.token_room = plan.num_tokens;
    plan.row_room = plan.num_tokens - plan.first_token;
    if (plan_cache_ != nullptr) {
      plan.token_room = size_class(plan.token_room);
      plan.row_room = size_class(plan.row_room);
    }
    plan.stream = running_.options->independent_streams ? stream_of(series->id) : 0;
    const int positions =
        plan.num_tokens + running_.paths.query_rows() + running_.paths.decode_patches;
    if (positions > facts_.max_patches) {
      fail(ErrorCode::invalid_argument,
           "context and horizon together are {} patches, at most {} are supported; shorten either",
           positions, facts_.max_patches);
    }
  }
}

// Makes the arena large enough for the largest group.
void Forecaster::reserve_memory() {
  std::size_t largest = 0;
  for (std::span<SeriesPlan> rest(plans_); !rest.empty();) {
    const SeriesGroup group = take_group(rest, path_bytes_);
    arena_.start_measuring();
    largest = std::max(largest, carved(group).bytes);
  }
  arena_.reserve(largest);
}

// The cached plan for the shapes of this call, made if they are new. All plans share the arena: if
// its block has been replaced, the plan is laid out again, which allocates nothing.
const MemoryPlan* Forecaster::planned() {
  key_.clear();
  const PathPlan& paths = running_.paths;
  for (const int number : {paths.stored_paths, paths.path_steps, paths.block_patches,
                           paths.decode_patches, paths.joined_steps()}) {
    key_.push_back(number);
  }
  for (const SeriesPlan& plan : plans_) {
    key_.push_back(plan.series->num_variates);
    key_.push_back(plan.token_room);
    key_.push_back(plan.kept != nullptr ? plan.row_room : 0);
  }
  MemoryPlan* plan = plan_cache_->find(key_);
  if (plan != nullptr && plan->generation == arena_.generation()) return plan;
  reserve_memory();
  const bool is_new = plan == nullptr;
  if (is_new) {
    const std::string invalid = tuning_ != nullptr ? tuning_->take_invalid() : std::string();
    plan = &plan_cache_->add(key_, described_shape(), invalid);
  }
  std::size_t num_groups = 0;
  for (std::span<SeriesPlan> rest(plans_); !rest.empty(); ++num_groups) {
    const SeriesGroup group = take_group(rest, path_bytes_);
    if (num_groups == plan->groups.size()) plan->groups.emplace_back();
    PlannedGroup& planned = plan->groups[num_groups];
    GroupMemory& memory = planned.memory;
    arena_.start_handing_out();
    memory = carved(group);
    planned.prefixes.assign(memory.prefixes, memory.prefixes + group.num_sequences);
    planned.tails.assign(memory.tails, memory.tails + memory.max_lane_rows);
    memory.prefixes = planned.prefixes.data();
    memory.tails = planned.tails.data();
  }
  plan->generation = arena_.generation();
  if (is_new && tuning_ != nullptr) tune(*plan);
  return plan;
}

// Measures the schedules for all passes of a plan now instead of during a forecast.
void Forecaster::tune(const MemoryPlan& plan) {
  std::size_t number = 0;
  for (std::span<SeriesPlan> rest(plans_); !rest.empty(); ++number) {
    const SeriesGroup group = take_group(rest, path_bytes_);
    const GroupMemory& memory = plan.groups[number].memory;
    const int outputs = group.num_sequences * running_.paths.block_patches;
    const int rows = std::min(group.num_rows + outputs - group.num_sequences, memory.max_rows);
    tuning_->prepare(rows, outputs, memory.network);
    // The last layers process only the output rows.
    tuning_->prepare(outputs, outputs, memory.network);
    if (memory.max_lane_rows > 0) {
      const int lanes =
          std::min(group.num_sequences * running_.paths.stored_paths, memory.max_lane_rows);
      tuning_->prepare(lanes, lanes, memory.network);
    }
  }
  tuning_->keep();
}

// The shape of the call for the log of plans.
std::string Forecaster::described_shape() const {
  int variates = 0, tokens = 0;
  for (const SeriesPlan& plan : plans_) {
    variates += plan.series->num_variates;
    tokens = std::max(tokens, plan.token_room);
  }
  return fmt::format(
      "{} series, {} variates, up to {} patches of context, {} patches ahead, {} paths",
      plans_.size(), variates, tokens, running_.paths.block_patches + running_.paths.decode_patches,
      running_.paths.num_paths);
}

}  // namespace toto
