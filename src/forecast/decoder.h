// How a forecast continues beyond the first block of steps.
//
// A decoder runs every pass of a group of series: over the contexts, then over the values it feeds
// back. Networks do not know about it, so a network without a cache only needs another decoder.
#pragma once

#include <memory>

#include "forecast/passes.h"

namespace toto {

// Not thread-safe. Uses the memory of `running`, which must outlive it.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Runs the contexts through the network and writes the first block to the outputs. `trace`, if
  // given, receives the network's output; the group then has one series.
  virtual void start(const SeriesGroup& group, Trace* trace) = 0;
  // Forecasts the remaining steps and writes everything that needs all steps.
  virtual void finish(const SeriesGroup& group, Trace* trace) = 0;
};

std::unique_ptr<Decoder> make_sampled_paths(RunningCall& running);
std::unique_ptr<Decoder> make_median_blocks(RunningCall& running, const ModelFacts& facts);

}  // namespace toto
