// Facts about this machine and the limits it imposes on this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace toto {

std::string cpu_name();  // from /proc/cpuinfo; "unknown CPU" if it has none

// CPU and memory limits of the control groups of this process (a container, a service, a batch
// job).
struct CgroupLimits {
  std::optional<double> cores;                // CPU seconds per second; empty: no quota
  std::optional<std::uint64_t> memory_bytes;  // still free; empty: no limit
};

// Reads cgroup versions 1 and 2; the strictest limit of the process's own group and all its parents
// applies. Reclaimable page cache counts as free. `root` is prepended to /proc and /sys.
CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace toto
