#include "forecast/plan_cache.h"

#include <algorithm>

#include "base/error.h"

namespace toto {

MemoryPlan* PlanCache::find(const ShapeKey& key) noexcept {
  for (MemoryPlan& plan : plans_) {
    if (plan.key != key) continue;
    plan.last_use = ++clock_;
    return &plan;
  }
  return nullptr;
}

MemoryPlan& PlanCache::add(const ShapeKey& key, std::string_view shape,
                           std::string_view invalid_file) {
  const auto before = std::find(dropped_.begin(), dropped_.end(), key);
  const bool evicted = before != dropped_.end();
  if (evicted) dropped_.erase(before);
  if (static_cast<int>(plans_.size()) >= capacity_) {
    const auto oldest = std::min_element(
        plans_.begin(), plans_.end(),
        [](const MemoryPlan& a, const MemoryPlan& b) { return a.last_use < b.last_use; });
    // Dropped keys are remembered only to log the reason when they return; at most `capacity_`.
    if (static_cast<int>(dropped_.size()) >= capacity_) dropped_.erase(dropped_.begin());
    dropped_.push_back(std::move(oldest->key));
    plans_.erase(oldest);
  }
  plans_.push_back({.key = key, .last_use = ++clock_});
  ++made_;
  if (warm_) ++replans_;
  if (log_) {
    std::string reason = evicted ? "evicted" : "new shape class";
    if (!invalid_file.empty()) reason = fmt::format("cache file invalid: {}", invalid_file);
    log_(fmt::format("{} {}: {}: {}", warm_ ? "replan" : "plan", made_, reason, shape));
  }
  return plans_.back();
}

}  // namespace toto
