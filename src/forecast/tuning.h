// Mode max-autotune: schedules measured once on this machine, kept on disk, and used from then on.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "model/architecture.h"
#include "model/schedules.h"
#include "model/tuner.h"

namespace toto {

class Tuning {
 public:
  // Reads what earlier runs found out for such a model, machine and number of threads. An empty
  // `folder` keeps nothing.
  Tuning(Network& network, const EngineOptions& options, ThreadPool& pool,
         const std::string& folder);

  // Measures what a pass of that many rows and outputs still lacks; the workspace is scratch.
  void prepare(int rows, int outputs, const Workspace& workspace);
  // Writes what was measured since the last time. Where that fails it serves this process all the
  // same, and the log says why.
  void keep();

  // Why the file of an earlier run was of no use; empty if it was not so, or was asked for already.
  std::string take_invalid();

 private:
  Tuner tuner_;
  Schedules schedules_;
  std::string path_;
  std::string key_;
  std::string invalid_;
  std::function<void(std::string_view)> log_;
  int measured_ = 0;  // products, since the last keep()
};

}  // namespace toto
