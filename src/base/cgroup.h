// What the control groups of this process leave to it: of a container, a service or a batch job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace toto {

struct CgroupLimits {
  std::optional<double> cores;                // CPU time a second; none: no quota
  std::optional<std::uint64_t> memory_bytes;  // still to be had; none: no limit
};

// Versions 1 and 2, the strictest of the process's own group and all above it. Files that may be
// dropped from memory at any time count as free. `root` is where /proc and /sys are found.
CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace toto
