// Memory for numbers: aligned buffers, and an arena that one computation carves up and reuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace toto {

inline constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Owns `size` bytes, aligned to kAlignment (large ones to 2 MiB, so that the kernel can back them
// with huge pages). Contents start as zero. Throws Error(out_of_memory).
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size);
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  ~AlignedBytes();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) : bytes_(count * sizeof(T)), count_(count) {}
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return bytes_.size(); }
  std::span<T> span() { return {data(), count_}; }
  std::span<const T> span() const { return {data(), count_}; }

 private:
  AlignedBytes bytes_;
  std::size_t count_ = 0;
};

// Hands out pieces of one block. Written for code that runs twice: once with a measuring arena,
// which only adds up what will be needed, and once to receive the pieces. A plan is thus written
// once.
class Arena {
 public:
  void start_measuring() {
    measuring_ = true;
    used_ = 0;
  }
  // Makes the block at least this large; keeps nothing. Refuses what the machine does not have.
  void reserve(std::size_t bytes);
  void start_handing_out() {
    measuring_ = false;
    used_ = 0;
  }

  template <typename T>
  T* take(std::size_t count) {
    const std::size_t offset = used_;
    used_ += round_up(count * sizeof(T), kAlignment);
    return measuring_ ? nullptr : reinterpret_cast<T*>(block_.data() + offset);
  }
  std::size_t used() const { return used_; }
  // Another number for every block there has been: pieces of an earlier one are gone, also where
  // the next has its size.
  std::uint64_t generation() const { return generation_; }

 private:
  AlignedBytes block_;
  std::uint64_t generation_ = 0;
  std::size_t used_ = 0;
  bool measuring_ = false;
};

// Bytes this process may still take: physical memory or the cgroup's limit, whichever is less.
std::uint64_t available_memory();

// Error(out_of_memory) if `what` needs more than that. Memory handed out before it is used would
// otherwise let the process be killed in the middle of its work.
void require_memory(std::uint64_t bytes, const char* what, const char* advice);

}  // namespace toto
