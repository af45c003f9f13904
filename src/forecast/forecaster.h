// Plans a call of the optimised modes and gives it its memory; a decoder runs its passes.
//
// Everything is sized and allocated before the first kernel; a shape seen before allocates nothing.
// Not thread-safe: the engine hands it out to one caller at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "forecast/decoder.h"
#include "forecast/passes.h"
#include "forecast/plan.h"
#include "forecast/plan_cache.h"
#include "forecast/tuning.h"
#include "model/architecture.h"

namespace toto {

class Forecaster {
 public:
  // `plans` keeps what a call decides for the next one of its shape; null: every call decides
  // again. `tuning` measures for every plan how its products are best cut up; null: as usual.
  Forecaster(const Architecture& architecture, const Network& network, ThreadPool& pool,
             PlanCache* plans, Tuning* tuning);

  // `batch` and `options` are validated; `out` holds one prepared forecast a series. `trace`, if
  // given, receives the first patch's distribution of a batch of one.
  void run(std::span<const Job> batch, const ForecastOptions& options, std::span<Forecast> out,
           Timings& timings, Trace* trace);

  // Of the latest call: patches of the i-th context that a session had kept.
  int patches_reused(std::size_t i) const {
    return std::max(plans_[i].first_token - running_.network.shape().leading_rows, 0);
  }

 private:
  void plan(std::span<const Job> batch, std::span<Forecast> out);
  State carved(const Group& group);
  void reserve_memory();
  const Plan* planned();
  void tune(const Plan& plan);
  std::string described_shape() const;

  const ModelFacts& facts_;
  Running running_;
  std::unique_ptr<Decoder> decoder_;
  Arena arena_;
  PlanCache* plan_cache_ = nullptr;
  Tuning* tuning_ = nullptr;
  ShapeKey key_;
  std::vector<SeriesPlan> plans_;
};

}  // namespace toto
