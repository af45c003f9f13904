// Weight arrays of a network: owned or mapped from a file, immutable once filled.
#pragma once

#include <cstddef>
#include <span>

#include "base/memory.h"

namespace toto {

// An array of any element type; used to write, map and measure all arrays in order.
class AnyWeightArray {
 public:
  virtual void map(const std::byte* ready_made) = 0;  // bytes() bytes, aligned to kAlignment
  virtual std::size_t bytes() const = 0;
  virtual std::span<const std::byte> as_bytes() const = 0;

 protected:
  ~AnyWeightArray() = default;
};

// An array that is declared with its size first and filled later: packed into its own memory, or
// pointing into a mapped file that outlives it.
template <typename T>
class WeightArray final : public AnyWeightArray {
 public:
  WeightArray() = default;
  explicit WeightArray(std::size_t count) : count_(count) {}

  // Allocates its own memory, zero-initialised, for packing.
  T* allocate() {
    own_ = Buffer<T>(count_);
    data_ = own_.data();
    return own_.data();
  }
  T* packing() { return own_.data(); }  // null unless allocated
  void map(const std::byte* ready_made) override { data_ = reinterpret_cast<const T*>(ready_made); }

  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const override { return count_ * sizeof(T); }
  std::span<const std::byte> as_bytes() const override {
    return std::as_bytes(std::span(data_, count_));
  }

 private:
  Buffer<T> own_;  // moving it does not move the data
  const T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace toto
