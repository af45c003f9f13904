// Memory plans of modes reduce-overhead and max-autotune: one per shape class, made once, with the
// least recently used one dropped.
//
// A plan is the layout of every buffer of a call in the arena that all plans share. A call with a
// cached plan sizes and allocates nothing; it only fills buffers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "forecast/group_memory.h"
#include "forecast/plan.h"

namespace toto {

// Two calls with equal keys use the same plan.
using ShapeKey = std::vector<std::int32_t>;

// The layout of one group of series. It owns its tables of spans: in the arena other plans would
// overwrite them.
struct PlannedGroup {
  GroupMemory memory;
  std::vector<KvSpan> prefixes;
  std::vector<KvSpan> tails;
};

struct MemoryPlan {
  ShapeKey key;
  std::vector<PlannedGroup> groups = {};  // in order
  std::uint64_t generation = 0;           // of the arena its pointers lie in
  std::uint64_t last_use = 0;
};

// Used under the engine's lock, except for the counters, which any thread may read.
class PlanCache {
 public:
  // `log` receives a line for every plan made; it may be empty.
  PlanCache(int capacity, std::function<void(std::string_view)> log)
      : capacity_(capacity), log_(std::move(log)) {}

  // The plan for a shape, or null. Does not allocate.
  MemoryPlan* find(const ShapeKey& key) noexcept;
  // Makes room and adds an empty plan for the caller to fill. `shape` describes it for the log;
  // `invalid_file` names a cache file that could not be used, and why.
  MemoryPlan& add(const ShapeKey& key, std::string_view shape, std::string_view invalid_file = {});

  void finish_warm_up() noexcept { warm_ = true; }
  std::int64_t num_made() const noexcept { return made_; }
  std::int64_t replans() const noexcept { return replans_; }  // made after warm-up

 private:
  int capacity_;
  std::function<void(std::string_view)> log_;
  std::vector<MemoryPlan> plans_;
  std::vector<ShapeKey> dropped_;  // distinguishes new shape classes from evicted ones
  std::uint64_t clock_ = 0;
  std::atomic<std::int64_t> made_ = 0, replans_ = 0;  // read while a forecast runs
  bool warm_ = false;
};

}  // namespace toto
