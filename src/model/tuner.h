// Measures how the matrix products of a network are best cut up on this machine.
#pragma once

#include "base/threads.h"
#include "model/architecture.h"
#include "model/schedules.h"

namespace toto {

class Tuner {
 public:
  Tuner(const Network& network, ThreadPool& pool) : network_(network), pool_(pool) {}

  // Measures every product at `rows` rows that `schedules` does not hold yet, and adds what was
  // fastest. Uses the workspace's buffers, which have room for that many rows, as scratch:
  // `outputs` rows for the head. Returns how many products were measured.
  int tune(int rows, int outputs, const Workspace& workspace, Schedules& schedules) const;

 private:
  Schedule fastest(Product product, int rows, const Workspace& workspace) const;

  const Network& network_;
  ThreadPool& pool_;
};

}  // namespace toto
