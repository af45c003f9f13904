// Forecasts with the optimised model: prefill once, fork for samples, decode, summarise.
//
// Everything is sized and allocated before the first kernel; a shape seen before allocates nothing.
// Not thread-safe: the engine hands it out to one caller at a time.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "forecast/plan.h"
#include "forecast/plan_cache.h"
#include "forecast/state.h"
#include "forecast/tuning.h"
#include "model/toto1.h"

namespace toto {

class Forecaster {
 public:
  // `plans` keeps what a call decides for the next one of its shape; null: every call decides anew.
  // `tuning` measures for every plan how its products are best cut up; null: as usual.
  Forecaster(const Toto1& model, ThreadPool& pool, PlanCache* plans, Tuning* tuning)
      : model_(model), pool_(pool), plan_cache_(plans), tuning_(tuning) {}

  // `batch` and `options` are validated; `out` holds one prepared forecast a series. `trace`, if
  // given, receives the first patch's distribution of a batch of one.
  void run(std::span<const Job> batch, const ForecastOptions& options, std::span<Forecast> out,
           Timings& timings, Trace* trace);

  // Of the latest call: patches of the i-th context that a session had kept.
  int patches_reused(std::size_t i) const {
    return std::max(plans_[i].first_token - (model_.has_variate_labels() ? 1 : 0), 0);
  }

 private:
  void plan(std::span<const Job> batch, std::span<Forecast> out);
  void reserve_memory();
  const Plan* planned();
  void tune(const Plan& plan);
  std::string described_shape() const;
  void take_kept(SeriesPlan& plan);
  void prepare(const Group& group);
  void prefill(const Group& group);
  void prefill_tokens(const Group& group, int first_token, int last_token);
  void first_patch(const Group& group, Trace* trace);
  void decode(const Group& group);
  void decode_lanes(const Group& group, int num_rows);
  void feed_patch(const Group& group, int num_rows, int patch);
  void read_patch(const Group& group, int num_rows, int patch);
  void set_known_future(const Group& group);
  void summarise(const Group& group);
  void check_cancelled() const;

  float* path_step(int sequence, int step) const {
    return state_.paths + (std::size_t(sequence) * paths_.path_steps + step) * paths_.num_paths;
  }

  const Toto1& model_;
  ThreadPool& pool_;
  Arena arena_;
  State state_;
  PlanCache* plan_cache_ = nullptr;
  Tuning* tuning_ = nullptr;
  ShapeKey key_;
  std::vector<SeriesPlan> plans_;
  const ForecastOptions* options_ = nullptr;  // of the running call
  PathPlan paths_{ForecastOptions{}, 1};
  int first_patch_steps_ = 0;  // that the head is asked for
};

}  // namespace toto
