// Threads that parse requests and write answers, so that neither the I/O nor the engine waits for
// it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "message.h"

namespace toto::server {

// Thread safe. Tasks run in the order they came, each on one of the threads; they must not throw.
class Workers {
 public:
  // Whoever waits for a task that has not begun by its deadline is told so: `late` runs instead.
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
  void post(std::function<void()> task);  // whatever the length of the queue
  void stop();                            // after everything posted has run

 private:
  struct Task {
    std::function<void()> run = {};
    Deadline deadline = {};
  };
  void work();
  void watch();

  const std::size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_, wake_watch_;
  std::deque<Task> tasks_;
  Clock::time_point next_deadline_ = Clock::time_point::max();  // `watch` sleeps until then
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace toto::server
