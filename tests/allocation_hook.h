// Counts allocations, and makes one of them fail: allocation_hook.cc replaces the global allocation
// functions of the program it is linked into.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/error.h"

namespace toto::testing {

inline std::atomic<long> allocations{0};
inline std::atomic<long> fail_at{0};  // the n-th from now on fails; 0: none

inline void* allocate(std::size_t size, std::size_t alignment) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (fail_at.load(std::memory_order_relaxed) > 0 && fail_at.fetch_sub(1) == 1) return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

inline void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Runs `action` with its first, second, ... allocation failing, and `check` after each failure,
// until it needs no more of them; returns how many made it fail.
template <typename Action, typename Check>
int fail_each_allocation(const Action& action, const Check& check) {
  int failures = 0;
  for (long n = 1; n < 100'000; ++n) {
    fail_at = n;
    bool failed = false;
    try {
      action();
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory)
          << "allocation " << n << ": " << error.what();
    }
    const bool reached = fail_at.exchange(0) == 0;
    if (!reached) return failures;
    failures += failed ? 1 : 0;
    if (failed) check();
  }
  ADD_FAILURE() << "more allocations than this test expects";
  return failures;
}

template <typename Action>
int fail_each_allocation(const Action& action) {
  return fail_each_allocation(action, [] {});
}

}  // namespace toto::testing
