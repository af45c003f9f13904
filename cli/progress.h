// Progress of a long job, its rate and the time left: a bar on a terminal, lines with --progress
// where stderr is not one, otherwise nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "cli/interrupt.h"

namespace toto::cli {

class Progress {
 public:
  // "forecast", "series"; `always`: --progress was given.
  Progress(std::string job, std::string unit, bool always);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap to call often: draws ten times a second at most, and at the end.
  void update(std::uint64_t done, std::uint64_t total);
  void clear();  // makes room for other text on the terminal; the next update draws again

 private:
  enum class Form { none, bar, lines };
  std::string job_, unit_;
  Form form_;
  bool drawn_ = false;
  bool finished_ = false;
  std::chrono::steady_clock::time_point start_, next_;
};

// Runs `work` with these options, interruptible and with progress.
template <typename Options, typename Work>
auto run_with_progress(std::string job, std::string unit, bool always, Options options,
                       const Work& work) {
  const InterruptGuard guard;
  Progress progress(std::move(job), std::move(unit), always);
  options.cancelled = InterruptGuard::interrupted;
  options.progress = [&progress](int done, int total) {
    progress.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  return work(options);
}

}  // namespace toto::cli
