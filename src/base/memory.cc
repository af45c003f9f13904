#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/machine.h"

namespace toto {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::align_val_t alignment_for(std::size_t size) {
  return std::align_val_t{size >= 2 * kHugePage ? kHugePage : kAlignment};
}

// MemAvailable of /proc/meminfo in bytes; unlimited if the file cannot be read.
std::uint64_t meminfo_available() {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kilobytes = 0;
  while (in >> name >> kilobytes >> unit) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size) : size_(size) {
  if (size == 0) return;
  const std::align_val_t alignment = alignment_for(size);
  // operator new, not mmap: tests replace it to count allocations and to make each one fail.
  data_ = static_cast<std::byte*>(::operator new(size, alignment, std::nothrow));
  if (data_ == nullptr) {
    fail(ErrorCode::out_of_memory, "cannot allocate {:.1f} MB; free memory or ask for less",
         static_cast<double>(size) / 1e6);
  }
  if (static_cast<std::size_t>(alignment) == kHugePage) madvise(data_, size, MADV_HUGEPAGE);
  std::memset(data_, 0, size);
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBytes::~AlignedBytes() {
  if (data_ != nullptr) ::operator delete(data_, alignment_for(size_));
}

void Arena::reserve(std::size_t bytes) {
  if (bytes <= block_.size()) return;
  ++generation_;
  block_ = AlignedBytes();  // free the old block first: the two together may not fit
  require_memory(bytes, "this forecast", "use fewer paths or samples, or a shorter horizon");
  block_ = AlignedBytes(bytes);
}

std::uint64_t available_memory() {
  const std::uint64_t machine = meminfo_available();
  return std::min(machine, cgroup_limits().memory_bytes.value_or(machine));
}

void require_memory(std::uint64_t bytes, const char* what, const char* advice) {
  if (const std::uint64_t available = available_memory(); bytes > available) {
    fail(ErrorCode::out_of_memory, "{} needs {:.0f} MB and {:.0f} MB are free; {}", what,
         static_cast<double>(bytes) / 1e6, static_cast<double>(available) / 1e6, advice);
  }
}

}  // namespace toto
