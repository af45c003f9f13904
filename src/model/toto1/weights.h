// The packed weights of Toto 1.0.
#pragma once

#include <cstddef>
#include <vector>

#include "base/threads.h"
#include "model/architecture.h"
#include "model/checkpoint.h"
#include "model/layers.h"
#include "model/toto1/config.h"
#include "model/weight_array.h"

namespace toto {

// Raise it whenever the same checkpoint gives other packed bytes: packed weights kept on disk by an
// earlier build are then made again. tests/model/packed_cache_test.cc holds the bytes to this
// number.
inline constexpr int kToto1PackingVersion = 2;

// The unembedding followed by the head's projections, folded into one layer: per step of the patch,
// [parameter][component]. Summed in double, rounded once. Eight times less work at the base size.
// The bias stays in double and is added behind the layer: a logit of 100 rounded to float32 would
// lose what the sum of small products knows.
struct FoldedHead {
  PackedLinear linear;       // its own bias is zero
  WeightArray<double> bias;  // [step][parameter][component]
};

struct Toto1Weights final : PackedWeights {
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

  // Sizes without numbers: all that config and type decide. `type` is what the weights are stored
  // as: f32, bf16 or int8. The embedding of patches, norms and biases are always float32.
  Toto1Weights(const Toto1Config& config, bool with_labels, DType type);
  // Gives them their numbers.
  void pack(const Toto1Config& config, const Checkpoint& checkpoint, const Kernels& kernels,
            ThreadPool& pool);
};

// Floats from one row of hidden values to the next.
std::size_t embed_stride(const Toto1Config& config);

}  // namespace toto
