// Memory use of this process. Values are empty if the system does not report them.
#pragma once

#include <cstdint>
#include <optional>

namespace toto {

inline constexpr double kMegabyte = 1 << 20;

std::optional<std::uint64_t> resident_bytes();
// The largest resident size since the process started, or since reset_peak().
std::optional<std::uint64_t> peak_resident_bytes();
// If the system does not allow it, the older peak stays, which can only overstate the result.
void reset_peak();

// Bytes allocated by malloc and not freed; exact, unlike resident memory, which counts pages. Empty
// under sanitizers, whose allocators do not count.
std::optional<std::uint64_t> heap_bytes();

// Returns freed memory to the system.
void release_freed_memory();

}  // namespace toto
