// Plans a call of the optimised modes and assigns its memory; a decoder runs the passes.
//
// Everything is sized and allocated before the first kernel; a call of a known shape allocates
// nothing. Not thread-safe: the engine's lock admits one caller at a time.
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
  // `plans` caches memory plans by shape; null: every call is planned again. `tuning` measures
  // schedules for every plan; null: default schedules.
  Forecaster(const Architecture& architecture, const Network& network, const Kernels& kernels,
             ThreadPool& pool, PlanCache* plans, Tuning* tuning);

  // `batch` and `options` are validated; `out` holds one prepared forecast per series. `trace`, if
  // given, receives the network's output; the batch then has one series.
  void run(std::span<const BatchItem> batch, const ForecastOptions& options,
           std::span<Forecast> out, Timings& timings, Trace* trace);

  // Patches of the i-th context of the latest call that were reused from its session.
  int patches_reused(std::size_t i) const {
    return std::max(plans_[i].first_token - running_.network.shape().leading_rows, 0);
  }

 private:
  void plan(std::span<const BatchItem> batch, std::span<Forecast> out);
  GroupMemory carved(const SeriesGroup& group);
  void reserve_memory();
  const MemoryPlan* planned();
  void tune(const MemoryPlan& plan);
  std::string described_shape() const;

  const ModelFacts& facts_;
  RunningCall running_;
  std::unique_ptr<Decoder> decoder_;
  Arena arena_;
  PlanCache* plan_cache_ = nullptr;
  Tuning* tuning_ = nullptr;
  ShapeKey key_;
  std::vector<SeriesPlan> plans_;
  std::size_t path_bytes_ = 0;  // of one variate of the running call
};

}  // namespace toto
