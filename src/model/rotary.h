// Rotary embedding with xPos as factors: rotated[d] = x[d] * a[d] + x[d ^ 1] * b[d].
//
// The reference centres the xPos power on the positions of each call: (t - max(t) / 2) / 512.
// Within one call the centre cancels between query and key, so prefill uses s^(t/512) and
// s^(-t/512), which do not depend on the length of the context: a cached prefix serves any longer
// context, bit for bit. A later call that ends at position o has its own centre o / 2 in the
// reference, while the cached keys have the centre (n - 1) / 2 of the context's n positions; in
// these units its exponent is o - o/2 + (n - 1)/2.
#pragma once

#include <cstddef>
#include <vector>

namespace toto {

// Immutable after construction; thread-safe.
class Rotary {
 public:
  explicit Rotary(int head_dim);

  // Floats of one position's factors: query a, query b, key a, key b, each [head_dim].
  std::size_t floats_per_position() const { return std::size_t(4) * head_dim_; }

  // `position` is the index in the sequence, `exponent` that of the xPos scale. Query factors
  // include 1 / sqrt(head_dim).
  void factors(int position, int exponent, float* dst) const noexcept;

  // s^(-t/512) overflows float32 from about 36,000 positions on.
  static constexpr int kMaxPositions = 32768;

 private:
  int head_dim_;
  std::vector<double> turns_;       // [head_dim / 2] frequency / 2 pi
  std::vector<double> log_scales_;  // [head_dim / 2] log s
};

}  // namespace toto
