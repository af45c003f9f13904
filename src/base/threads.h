// The engine's own thread pool. OpenMP's global pool would compete with PyTorch's in one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace toto {

// Physical cores this process may use, within its affinity mask and cgroup quota; at least 1.
int usable_cores();

// Runs numbered tasks on `num_threads` threads, including the caller's. Tasks are handed out
// dynamically, so a task's result must not depend on the thread that runs it. Only one run() at a
// time: the engine's lock guarantees it. Idle workers spin briefly (a forward pass has many short
// phases), then sleep without using CPU.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(i, worker) for every i in [0, num_tasks); returns when all are done. `worker` is
  // below num_threads() and names the thread for the length of the call: an index into scratch
  // memory. `task` must not throw.
  template <typename Task>
  void run(int num_tasks, const Task& task) noexcept {
    if (num_tasks <= 1 || workers_.empty()) {
      for (int i = 0; i < num_tasks; ++i) task(i, 0);
      return;
    }
    run_job(
        num_tasks,
        [](const void* context, int i, int worker) {
          (*static_cast<const Task*>(context))(i, worker);
        },
        &task);
  }

 private:
  using Invoke = void (*)(const void* context, int task, int worker);
  void run_job(int num_tasks, Invoke invoke, const void* context) noexcept;
  void work(int worker) noexcept;
  bool take_task(int worker) noexcept;  // false: nothing left to take

  // Tickets hold (generation << 32 | tasks left). A worker that wakes up late finds its
  // generation's count at zero and can never take a task of the next job by mistake.
  alignas(64) std::atomic<std::uint64_t> tickets_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  Invoke invoke_ = nullptr;
  const void* context_ = nullptr;
  int num_tasks_ = 0;
  std::uint32_t generation_ = 0;
  std::vector<std::thread> workers_;
};

// Calls task(row, worker) for every row. Fewer than 32 rows run on the caller alone: waking the
// workers would cost more than it saves.
template <typename Task>
void run_rows(ThreadPool& pool, int rows, const Task& task) noexcept {
  constexpr int kWorthWaking = 32;
  if (rows >= kWorthWaking) {
    pool.run(rows, task);
  } else {
    for (int row = 0; row < rows; ++row) task(row, 0);
  }
}

}  // namespace toto
