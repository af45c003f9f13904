#include "workers.h"

#include <algorithm>
#include <utility>

namespace toto::server {

void wait_until(std::condition_variable& wake, std::unique_lock<std::mutex>& lock,
                Clock::time_point time) {
  if (time == Clock::time_point::max()) {  // wait_until would overflow
    wake.wait(lock);
  } else {
    wake.wait_until(lock, time);
  }
}

Workers::Workers(int num_threads, std::size_t max_queued) : max_queued_(max_queued) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
  threads_.emplace_back([this] { watch(); });
}

bool Workers::try_post(std::function<void()> task, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || tasks_.size() >= max_queued_) return false;
    if (deadline.time < next_deadline_) wake_watch_.notify_one();
    tasks_.push_back({std::move(task), std::move(deadline)});
  }
  wake_.notify_one();
  return true;
}

void Workers::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({.run = std::move(task)});
  }
  wake_.notify_one();
}

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  wake_watch_.notify_one();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front().run);
      tasks_.pop_front();
    }
    task();
  }
}

// Runs `late` callbacks in time even while all threads are busy.
void Workers::watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    std::vector<WorkerTask> late;
    const Clock::time_point now = Clock::now();
    next_deadline_ = Clock::time_point::max();
    std::erase_if(tasks_, [&](WorkerTask& task) {
      if (now < task.deadline.time) {
        next_deadline_ = std::min(next_deadline_, task.deadline.time);
        return false;
      }
      late.push_back(std::move(task));
      return true;
    });
    if (!late.empty()) {
      lock.unlock();
      for (const WorkerTask& task : late) task.deadline.late();
      late.clear();
      lock.lock();
    } else {
      wait_until(wake_watch_, lock, next_deadline_);
    }
  }
}

}  // namespace toto::server
