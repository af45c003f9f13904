// Every number of the optimised network: folded, permuted and packed the way the kernels read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.h"
#include "model/checkpoint.h"
#include "model/layers.h"
#include "model/weight_array.h"

namespace toto {

// Raise it whenever the same checkpoint gives other packed bytes: packed weights kept on disk by an
// earlier build are then made anew. tests/packed_cache_test.cc holds the bytes to this number.
inline constexpr int kPackingVersion = 2;

struct Toto1Weights {
  struct Layer {
    WeightArray<float> norm1, norm2;  // [embed_stride]
    PackedLinear qkv;                 // outputs as (qkv, head, head_dim)
    PackedLinear out;
    PackedLinear gate_up;  // panels of gates and ups side by side
    PackedLinear down;
  };
  WeightArray<float> target_label, exogenous_label;  // [embed_stride], empty without labels
  PackedLinear embed;
  std::vector<Layer> layers;
  FoldedHead head;

  // `type` is what the weights are stored as: f32, bf16 or int8. The embedding of patches, norms
  // and biases are always float32.
  static Toto1Weights pack(const Checkpoint& checkpoint, DType type, const Kernels& kernels,
                           ThreadPool& pool);
  // Sizes without numbers: all that config and type decide.
  static Toto1Weights declare(const Config& config, bool with_labels, DType type);
  // Gives what was declared its numbers: arrays() of what pack() made. They must outlive this.
  void map(std::span<const std::span<const std::byte>> arrays);

  std::vector<std::span<const std::byte>> arrays() const;  // in a fixed order
  std::vector<std::uint64_t> array_sizes() const;          // in bytes, in the same order
  std::size_t bytes() const;
};

// Floats from one row of hidden values to the next.
std::size_t embed_stride(const Config& config);

}  // namespace toto
