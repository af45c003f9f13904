#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "base/machine.h"

namespace toto {
namespace {

// About 20 us: longer than the gap between two phases of a forward pass, far shorter than a time
// slice, so spinning costs other processes on the core little.
constexpr int kSpins = 4000;

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  // Two hyperthreads of one core share its vector units: count each group of siblings once.
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/topology/thread_siblings_list");
    std::string siblings;
    if (!(in >> siblings)) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  int count = std::max(1, static_cast<int>(cores.size()));
  if (const std::optional<double> quota = cgroup_limits().cores; quota.has_value()) {
    count = std::clamp(static_cast<int>(std::ceil(*quota)), 1, count);
  }
  return count;
}

ThreadPool::ThreadPool(int num_threads) {
  try {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Fewer threads than asked compute the same bits, only slower.
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Publishes the tasks, works on them itself, then waits for the workers' last tasks: spinning
// first, because most phases end within microseconds.
void ThreadPool::run_job(int num_tasks, Invoke invoke, const void* context) noexcept {
  invoke_ = invoke;
  context_ = context;
  num_tasks_ = num_tasks;
  done_.store(0, std::memory_order_relaxed);
  ++generation_;
  tickets_.store(std::uint64_t{generation_} << 32 | static_cast<std::uint32_t>(num_tasks));
  wake_.fetch_add(1);
  if (sleepers_.load() > 0) wake_.notify_all();

  while (take_task(0)) {
  }
  for (int spin = 0; spin < kSpins; ++spin) {
    if (done_.load(std::memory_order_acquire) == num_tasks) return;
    pause_cpu();
  }
  caller_sleeps_.store(true);
  for (int done = done_.load(); done != num_tasks; done = done_.load()) done_.wait(done);
  caller_sleeps_.store(false);
}

// Takes a ticket with compare-and-swap; the generation in its upper half makes a stale ticket fail.
bool ThreadPool::take_task(int worker) noexcept {
  std::uint64_t ticket = tickets_.load(std::memory_order_acquire);
  do {
    if (static_cast<std::uint32_t>(ticket) == 0) return false;
  } while (!tickets_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel));
  // Holding an unfinished task keeps run_job() from returning, so the job's fields stay valid.
  const int num_tasks = num_tasks_;
  invoke_(context_, num_tasks - static_cast<int>(static_cast<std::uint32_t>(ticket)), worker);
  // After the increment the run may be over and its fields may belong to the next one.
  if (done_.fetch_add(1) + 1 == num_tasks && caller_sleeps_.load()) done_.notify_one();
  return true;
}

// The loop of a worker: run tasks, spin, sleep.
void ThreadPool::work(int worker) noexcept {
  for (;;) {
    // Load `wake_` before `stop_`: a stop requested before the load is noticed here, a later one
    // ends the wait.
    const std::uint32_t seen = wake_.load();
    if (stop_.load()) return;
    while (take_task(worker)) {
    }
    for (int spin = 0; spin < kSpins && wake_.load(std::memory_order_relaxed) == seen; ++spin) {
      pause_cpu();
    }
    sleepers_.fetch_add(1);
    wake_.wait(seen);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace toto
