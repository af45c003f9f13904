// The packed weights of Toto 2.0, with every unit-scaling factor folded in.
//
// Let x be the stream of the reference and c the product of sqrt(1 + tau^2) of all branches so far.
// The network's stream is c x: a residual connection is then a plain addition, and a branch's last
// layer carries c tau / sqrt(fan in). A norm divides by the size of c x, so its epsilon is
// norm_eps c^2. Factors are multiplied in double and rounded once: 5e-8 of the output, a tenth of
// PyTorch float32's own error.
#pragma once

#include <cstddef>
#include <vector>

#include "base/threads.h"
#include "model/architecture.h"
#include "model/layers.h"
#include "model/toto2/toto2_config.h"

namespace toto {

// Increase it whenever the same checkpoint packs to different bytes, so that cached weights of an
// earlier build are packed again. tests/model/toto2_test.cc checks the bytes of this version.
inline constexpr int kToto2PackingVersion = 1;

struct Toto2Weights final : PackedWeights {
  struct PackedLayer {
    PackedLinear qkv;  // outputs [heads of Q][groups of K][groups of V], each [head_dim]
    WeightArray<float> q_norm,
        k_norm;  // [head_dim] factors after their norm; empty without qk_norm
    PackedLinear out;
    PackedLinear gate_up;  // each panel holds kPanel/2 gate and kPanel/2 up columns
    PackedLinear down;
  };
  // The patch embedding: [values, flags] to mlp_width, then [hidden, values, flags] to d_model.
  PackedLinear embed_in, embed_out;
  WeightArray<float> query;  // [embed_stride], the embedding of a patch to predict
  std::vector<PackedLayer> layers;
  WeightArray<double> epsilons;  // of the norms: two per layer, then the last one
  // The head: d_model to mlp_width, then [hidden, stream] to [step][level].
  PackedLinear head_in, head_out;

  // Declares all sizes. `type` is the stored type of the layers' weights: f32, f16 or bf16. Patch
  // embedding, last layer of the head and biases are always float32.
  Toto2Weights(const Toto2Config& config, DType type);
  // Reads, folds and packs the tensors of the checkpoint.
  void pack(const Toto2Config& config, const Checkpoint& checkpoint, ThreadPool& pool);
};

// Values and keys of a head share one width; the narrower of them is padded with zeros, which
// changes no sum.
inline int head_dim_of(const Toto2Config& config) {
  return config.qk_dim > config.v_dim ? config.qk_dim : config.v_dim;
}
// Floats from one row of hidden values to the next.
std::size_t toto2_embed_stride(const Toto2Config& config);

}  // namespace toto
