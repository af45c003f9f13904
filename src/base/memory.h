// Aligned buffers, and an arena that one computation divides and reuses.
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

// An owning array of trivial T, zero-initialised, aligned to kAlignment.
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

// Hands out pieces of one block. The same code runs twice: once on a measuring arena, which only
// adds up sizes and hands out null pointers, and once to receive the pieces, so size and layout
// cannot disagree. Not thread-safe.
class Arena {
 public:
  void start_measuring() {
    measuring_ = true;
    used_ = 0;
  }
  // Makes the block at least this large; the old contents are lost. Error(out_of_memory) if the
  // machine does not have that much.
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
  // Counts the blocks allocated so far. Pieces handed out under an earlier number are dangling,
  // even if the new block has the same size.
  std::uint64_t generation() const { return generation_; }

 private:
  AlignedBytes block_;
  std::uint64_t generation_ = 0;
  std::size_t used_ = 0;
  bool measuring_ = false;
};

// Bytes this process may still allocate: free physical memory or the cgroup's limit, the smaller.
std::uint64_t available_memory();

// Error(out_of_memory) if `what` needs more than available_memory(). Linux overcommits: without
// this check the allocation succeeds and the process is killed later, when it touches the pages.
void require_memory(std::uint64_t bytes, const char* what, const char* advice);

}  // namespace toto
