#include "base/machine.h"

#include <algorithm>
#include <fstream>
#include <string_view>

namespace toto {
namespace {

// Empty for a missing file and for text such as "max", which means no limit.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

// The number after `name` in a file of "name number" lines; 0 if the name is absent.
std::uint64_t field_in(const std::string& path, std::string_view name) {
  std::ifstream in(path);
  std::string found;
  for (std::uint64_t number = 0; in >> found >> number;) {
    if (found == name) return number;
  }
  return 0;
}

// Keeps the smaller of two limits; an empty limit is infinite.
template <typename T>
void tighten(std::optional<T>& limit, T other) {
  limit = std::min(limit.value_or(other), other);
}

// Both in microseconds; a quota of 0 or less means no limit.
void take_quota(CgroupLimits& limits, double quota, double period) {
  if (quota > 0 && period > 0) tighten(limits.cores, quota / period);
}

// Free bytes are limit - used + droppable: page cache that the kernel can reclaim counts as free.
void take_memory(CgroupLimits& limits, const std::string& limit_file, const std::string& used_file,
                 std::uint64_t droppable) {
  const std::optional<std::uint64_t> limit = number_in(limit_file), used = number_in(used_file);
  if (!limit.has_value() || !used.has_value()) return;
  const std::uint64_t kept = *used - std::min(*used, droppable);
  tighten(limits.memory_bytes, *limit - std::min(*limit, kept));
}

// cgroup version 2: cpu.max holds quota and period in microseconds.
void take_v2(CgroupLimits& limits, const std::string& group) {
  std::ifstream cpu(group + "/cpu.max");
  double quota = 0, period = 0;
  if (cpu >> quota >> period) take_quota(limits, quota, period);
  take_memory(limits, group + "/memory.max", group + "/memory.current",
              field_in(group + "/memory.stat", "inactive_file"));
}

void take_v1_cpu(CgroupLimits& limits, const std::string& group) {
  // A quota of -1 means no limit.
  std::ifstream quota_file(group + "/cpu.cfs_quota_us"), period_file(group + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_file >> quota && period_file >> period) take_quota(limits, quota, period);
}

// cgroup version 1: counts include the children of the group.
void take_v1_memory(CgroupLimits& limits, const std::string& group) {
  take_memory(limits, group + "/memory.limit_in_bytes", group + "/memory.usage_in_bytes",
              field_in(group + "/memory.stat", "total_inactive_file"));
}

// Applies `take` to the group at `path` below `mount` and to all its parents. A container may see
// only the root group, or its own group mounted as the root; missing files impose no limit.
template <typename Take>
void take_upwards(CgroupLimits& limits, const std::string& mount, std::string path,
                  const Take& take) {
  while (!path.empty()) {
    if (path != "/") take(limits, mount + path);
    path.resize(path.rfind('/'));
  }
  take(limits, mount);
}

}  // namespace

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(std::min(colon + 2, line.size()));
    }
  }
  return "unknown CPU";
}

CgroupLimits cgroup_limits(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  CgroupLimits limits;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // number:controller,controller:/path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const auto has = [&](std::string_view name) {
      return controllers.find(name) != std::string::npos;
    };
    if (controllers == ",,") take_upwards(limits, mount, path, take_v2);
    if (has(",cpu,")) take_upwards(limits, mount + "/cpu", path, take_v1_cpu);
    if (has(",memory,")) take_upwards(limits, mount + "/memory", path, take_v1_memory);
  }
  return limits;
}

}  // namespace toto
