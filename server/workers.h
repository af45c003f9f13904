// Threads that parse requests and write answers, so that I/O and engine threads do not have to.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "http_message.h"

namespace toto::server {

// Waits for a notification, or until `time`; time_point::max() is never.
void wait_until(std::condition_variable& wake, std::unique_lock<std::mutex>& lock,
                Clock::time_point time);

// Thread safe. Tasks start in order, each on one of the threads; they must not throw.
class Workers {
 public:
  // If a task has not started by `time`, `late` runs instead of it.
  struct Deadline {
    Clock::time_point time = Clock::time_point::max();
    std::function<void()> late = {};
  };
  Workers(int num_threads, std::size_t max_queued);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False if the queue is full or stopped.
  bool try_post(std::function<void()> task, Deadline deadline);
  void post(std::function<void()> task);  // ignores max_queued
  void stop();                            // after everything posted has run

 private:
  struct WorkerTask {
    std::function<void()> run = {};
    Deadline deadline = {};
  };
  void work();
  void watch();

  const std::size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_, wake_watch_;
  std::deque<WorkerTask> tasks_;
  Clock::time_point next_deadline_ = Clock::time_point::max();  // `watch` sleeps until it
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace toto::server
