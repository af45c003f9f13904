// Mode max-autotune: schedules are measured once per machine and kept on disk.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/threads.h"
#include "io/cache_file.h"
#include "model/architecture.h"
#include "model/schedules.h"

namespace toto {

// Used under the engine's lock. The network keeps a reference to the schedules.
class Tuning {
 public:
  // Reads schedules of earlier runs for this model size, machine and number of threads. With an
  // empty `folder` nothing is read or kept.
  Tuning(Network& network, const EngineOptions& options, ThreadPool& pool,
         const std::string& folder);

  // Measures the missing schedules of a pass of this many rows and outputs; overwrites the
  // workspace.
  void prepare(int rows, int outputs, const Workspace& workspace);
  // Writes new measurements to disk. If that fails, this process still uses them and the log has
  // the reason.
  void keep();

  // Returns and clears the reason why an earlier run's file could not be used; empty if it could.
  std::string take_invalid();

 private:
  Schedule fastest(Product product, int rows, const Workspace& workspace) const;

  const Network& network_;
  ThreadPool& pool_;
  Schedules schedules_;
  std::optional<io::CacheFile> file_;  // none: nothing is kept
  std::string key_;
  std::string invalid_;
  std::function<void(std::string_view)> log_;
  int measured_ = 0;  // products, since the last keep()
};

}  // namespace toto
