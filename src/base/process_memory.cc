#include "base/process_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>
#include <string_view>

namespace toto {
namespace {

// A field of /proc/self/status, which are in kB.
std::optional<std::uint64_t> status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> resident_bytes() { return status_bytes("VmRSS:"); }

std::optional<std::uint64_t> peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak() {
  // proc(5): writing 5 resets the peak to the current resident size.
  std::ofstream("/proc/self/clear_refs") << 5;
}

std::optional<std::uint64_t> heap_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = ::mallinfo2();
  const std::uint64_t bytes = info.uordblks + info.hblkhd;  // arenas plus mapped blocks
  if (bytes > 0) return bytes;
#endif
  return std::nullopt;
}

void release_freed_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace toto
