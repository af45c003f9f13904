// Counts the memory held for clients: bodies, decompressed bodies, series, paths and large answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace toto::server {

// Shared by all clients; requests beyond it are refused. Thread safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t most) : most_(most) {}
  bool take(std::size_t bytes) {
    if (used_.fetch_add(bytes) + bytes <= most_) return true;
    give_back(bytes);
    return false;
  }
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes); }

 private:
  std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

// One request's part of the budget, released with the request. It holds the budget: a queued
// request may outlive the HTTP server it came through. Thread safe.
class MemoryShare {
 public:
  explicit MemoryShare(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  ~MemoryShare() { release(); }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  bool take(std::size_t bytes) {
    if (!budget_->take(bytes)) return false;
    held_.fetch_add(bytes);
    return true;
  }
  void give_back(std::size_t bytes) {
    held_.fetch_sub(bytes);
    budget_->give_back(bytes);
  }
  void release() { budget_->give_back(held_.exchange(0)); }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  std::atomic<std::size_t> held_{0};
};

}  // namespace toto::server
