#include "base/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "eventually.h"

namespace toto {
namespace {

TEST(Threads, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> counts(tasks);
      pool.run(tasks, [&](int i, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        counts[i].fetch_add(1);
      });
      for (const auto& count : counts) EXPECT_EQ(count.load(), 1);
    }
  }
}

// A worker that wakes up late must not run a task of the next call: many short runs in a row.
TEST(Threads, ManyShortJobs) {
  ThreadPool pool(3);
  std::vector<int> sums(4);
  for (int job = 0; job < 20000; ++job) {
    pool.run(4, [&](int i, int) { sums[i] += i + 1; });
    if (job % 1000 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sums[i], 20000 * (i + 1));
}

TEST(Threads, WorkersHaveTheirOwnIndex) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> clash{false};
  pool.run(2000, [&](int, int worker) {
    if (inside[worker].fetch_add(1) != 0) clash = true;
    inside[worker].fetch_sub(1);
  });
  EXPECT_FALSE(clash);
}

// Workers spin for a moment after a job, on a busy machine perhaps a long one; then they sleep.
TEST(Threads, IdleAtZeroCpu) {
  ThreadPool pool(3);
  pool.run(100, [](int, int) {});
  const auto cpu_microseconds = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec;
  };
  EXPECT_TRUE(testing::eventually([&] {
    const auto before = cpu_microseconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return cpu_microseconds() - before < 10'000;
  }));
}

TEST(Threads, PoolsStartAndStop) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(1 + i % 5);
    std::atomic<int> sum{0};
    if (i % 3 != 0) pool.run(10, [&](int task, int) { sum += task; });
    EXPECT_EQ(sum.load(), i % 3 != 0 ? 45 : 0);
  }
}

TEST(Threads, CoresAreCounted) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace toto
