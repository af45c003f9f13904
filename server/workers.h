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

namespace toto::server {

// Thread safe. Tasks run in the order they came, each on one of the threads; they must not throw.
class Workers {
 public:
  Workers(int num_threads, std::size_t max_queued);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool try_post(std::function<void()> task);  // false if the queue is full or stopped
  void post(std::function<void()> task);      // whatever the length of the queue
  void stop();                                // after everything posted has run

 private:
  void work();

  const std::size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace toto::server
