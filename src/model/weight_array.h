// Numbers of a network, immutable once they are there.
#pragma once

#include <cstddef>
#include <span>

#include "base/memory.h"

namespace toto {

// An array that is declared first, so that its size is known, and then given its numbers: packed
// into memory of its own, or found ready-made in a mapped file that outlives it.
template <typename T>
class WeightArray {
 public:
  WeightArray() = default;
  explicit WeightArray(std::size_t count) : count_(count) {}

  // Memory of its own, zero, to be written while packing.
  T* allocate() {
    own_ = Buffer<T>(count_);
    data_ = own_.data();
    return own_.data();
  }
  T* packing() { return own_.data(); }  // null unless allocated
  // bytes() bytes, aligned to kAlignment.
  void map(const std::byte* ready_made) { data_ = reinterpret_cast<const T*>(ready_made); }

  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::span<const std::byte> as_bytes() const { return std::as_bytes(std::span(data_, count_)); }

 private:
  Buffer<T> own_;  // moving it leaves its numbers where they are
  const T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace toto
