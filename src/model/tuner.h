// Finds out how this machine likes the matrix products of a model cut up.
#pragma once

#include "base/threads.h"
#include "model/schedules.h"
#include "model/toto1.h"

namespace toto {

class Tuner {
 public:
  Tuner(const Toto1& model, ThreadPool& pool) : model_(model), pool_(pool) {}

  // Measures every product at `rows` rows that `schedules` does not hold yet, and adds what was
  // fastest. Uses the workspace's buffers, which have room for so many rows, as scratch: `outputs`
  // rows for the head. Returns how many products were measured.
  int tune(int rows, int outputs, const Toto1::Workspace& workspace, Schedules& schedules) const;

 private:
  Schedule fastest(Product product, int rows, const Toto1::Workspace& workspace) const;

  const Toto1& model_;
  ThreadPool& pool_;
};

}  // namespace toto
