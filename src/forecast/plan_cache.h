// Plans of the modes that keep them: one a shape class, made once, least recently used dropped.
//
// A plan is the layout of every buffer of a call: where each piece lies in the one arena that all
// plans share. A call whose plan is here sizes nothing, allocates nothing and only fills buffers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "forecast/plan.h"
#include "forecast/state.h"

namespace toto {

// What two calls must share to run by the same plan.
using ShapeKey = std::vector<std::int32_t>;

// The layout of one group of series. Its tables of spans are its own: in the arena the next plan
// would write over them.
struct PlannedGroup {
  State state;
  std::vector<KvSpan> prefixes;
  std::vector<KvSpan> tails;
};

struct Plan {
  ShapeKey key;
  std::vector<PlannedGroup> groups = {};  // in order
  std::uint64_t generation = 0;           // of the arena its pointers lie in
  std::uint64_t last_use = 0;
};

class PlanCache {
 public:
  // `log` receives a sentence for every plan made; it may be empty.
  PlanCache(int capacity, std::function<void(std::string_view)> log)
      : capacity_(capacity), log_(std::move(log)) {}

  // The plan for a shape, or null. Allocates nothing.
  Plan* find(const ShapeKey& key) noexcept;
  // Makes room and adds one, to be filled by the caller. `shape` describes it for the log;
  // `invalid_file` names a file of the cache that could not serve, and why.
  Plan& add(const ShapeKey& key, std::string_view shape, std::string_view invalid_file = {});

  void finish_warm_up() noexcept { warm_ = true; }
  std::int64_t num_made() const noexcept { return made_; }
  std::int64_t replans() const noexcept { return replans_; }  // made after warm-up

 private:
  int capacity_;
  std::function<void(std::string_view)> log_;
  std::vector<Plan> plans_;
  std::vector<ShapeKey> dropped_;  // to tell a class that is new from one that had to go
  std::uint64_t clock_ = 0;
  std::atomic<std::int64_t> made_ = 0, replans_ = 0;  // read while a forecast runs
  bool warm_ = false;
};

}  // namespace toto
