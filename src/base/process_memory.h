// What this process holds, as the system sees it. Absent where the system does not tell.
#pragma once

#include <cstdint>
#include <optional>

namespace toto {

inline constexpr double kMegabyte = 1 << 20;

std::optional<std::uint64_t> resident_bytes();
// The most that was resident since the process began, or since reset_peak.
std::optional<std::uint64_t> peak_resident_bytes();
// Where this is not allowed an older peak stays, which can only make a figure larger.
void reset_peak();

// Handed out by malloc and not given back: to the byte, where resident memory knows pages. Absent
// under sanitizers, whose allocators do not count.
std::optional<std::uint64_t> heap_bytes();

// Gives back to the system what was freed.
void release_freed_memory();

}  // namespace toto
