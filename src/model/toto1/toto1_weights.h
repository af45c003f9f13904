// The packed weights of Toto 1.0.
#pragma once

#include <cstddef>
#include <vector>

#include "base/threads.h"
#include "model/architecture.h"
#include "model/checkpoint.h"
#include "model/layers.h"
#include "model/toto1/toto1_config.h"
#include "model/weight_array.h"

namespace toto {

// Increase it whenever the same checkpoint packs to different bytes, so that cached weights of an
// earlier build are packed again. tests/model/packed_cache_test.cc checks the bytes of this
// version.
inline constexpr int kToto1PackingVersion = 2;

// The unembedding and the head's projections folded into one layer with outputs
// [step][parameter][component]. Summed in double, rounded once; an eighth of the work at the base
// size. The bias stays in double and is added after the layer: a bias of 100 in float32 would round
// away the sum of small products.
struct FoldedHead {
  PackedLinear linear;       // its own bias is zero
  WeightArray<double> bias;  // [step][parameter][component]
};

struct Toto1Weights final : PackedWeights {
  struct PackedLayer {
    WeightArray<float> norm1, norm2;  // [embed_stride]
    PackedLinear qkv;                 // outputs [qkv][head][head_dim]
    PackedLinear out;
    PackedLinear gate_up;  // each panel holds kPanel/2 gate and kPanel/2 up columns
    PackedLinear down;
  };
  WeightArray<float> target_label, exogenous_label;  // [embed_stride], empty without labels
  PackedLinear embed;
  std::vector<PackedLayer> layers;
  FoldedHead head;

  // Declares all sizes. `type` is the stored type of the layers' weights: f32, bf16 or int8. Patch
  // embedding, norms and biases are always float32.
  Toto1Weights(const Toto1Config& config, bool with_labels, DType type);
  // Reads, folds and packs the tensors of the checkpoint.
  void pack(const Toto1Config& config, const Checkpoint& checkpoint, const Kernels& kernels,
            ThreadPool& pool);
};

// Floats from one row of hidden values to the next.
std::size_t embed_stride(const Toto1Config& config);

}  // namespace toto
