// How a forecast goes on beyond the first block of steps.
//
// A decoder runs every pass of a group of series: over the contexts, then over what it feeds back.
// Networks know nothing of it, so one without a cache needs only another decoder.
#pragma once

#include <memory>

#include "forecast/passes.h"

namespace toto {

// Not thread-safe; works on the memory of `running`, which outlives it.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Runs the contexts through the network and reports the first block. `trace`, if given, receives
  // what the network says of a group of one series.
  virtual void start(const Group& group, Trace* trace) = 0;
  // The steps beyond it, and everything that needs all steps.
  virtual void finish(const Group& group, Trace* trace) = 0;
};

std::unique_ptr<Decoder> make_sampled_paths(Running& running);
std::unique_ptr<Decoder> make_median_blocks(Running& running, const ModelFacts& facts);

}  // namespace toto
