// Times every run separately: Google Benchmark reports a mean, which one slow run spoils.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace toto::bench {

// 1, 2 and all cores, as far as the machine has them.
inline std::vector<int> thread_counts() {
  std::vector<int> counts{1};
  if (usable_cores() >= 2) counts.push_back(2);
  if (usable_cores() > 2) counts.push_back(usable_cores());
  return counts;
}

// Adds the counters best_ms, median_ms and p99_ms. The benchmark must use manual time.
template <typename Work>
void measure(benchmark::State& state, const Work& work) {
  using Clock = std::chrono::steady_clock;
  // Other libraries' threads spin for a while after their last task.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  work();
  std::vector<double> seconds;
  for ([[maybe_unused]] auto iteration : state) {
    const Clock::time_point start = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    state.SetIterationTime(seconds.back());
  }
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  state.counters["best_ms"] = 1e3 * seconds.front();
  state.counters["median_ms"] = 1e3 * (seconds[(n - 1) / 2] + seconds[n / 2]) / 2;
  state.counters["p99_ms"] = 1e3 * seconds[(n - 1) * 99 / 100];
}

}  // namespace toto::bench
