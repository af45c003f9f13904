// Rotary embedding with xPos as factors: rotated[d] = x[d] * a[d] + x[d ^ 1] * b[d].
//
// Toto 1.0 centres the xPos power on the positions of each call: (t - max(t) / 2) / 512.
// Within one call the centre cancels between query and key, so prefill uses s^(t/512) and
// s^(-t/512), which do not depend on the length of the context: a cached prefix serves any longer
// context, bit for bit. A later call that ends at position o has its own centre o / 2 in the
// reference, while the cached keys have the centre (n - 1) / 2 of the context's n positions; in
// these units its exponent is o - o/2 + (n - 1)/2. Toto 2.0 does the same with the base 256.
#pragma once

#include <cstddef>
#include <vector>

namespace toto {

// What differs between architectures.
struct RotaryRule {
  int dims = 0;             // rotated dimensions of a head
  double query_factor = 1;  // included in the factors of queries
  bool has_xpos = true;
  double xpos_base = 512;
  bool paired_scales = false;   // the scales of pairs are [s0 s0 s1 s1 ...], else [s0 s1 ... s0 s1]
  bool float32_tables = false;  // frequencies and scales are rounded to float32
};

// Immutable after construction; thread-safe.
class Rotary {
 public:
  explicit Rotary(const RotaryRule& rule);

  // Floats of one position's factors: query a, query b, key a, key b, each [dims].
  std::size_t floats_per_position() const { return std::size_t(4) * rule_.dims; }

  // `position` is the index in the sequence, `exponent` that of the xPos scale.
  void factors(int position, int exponent, float* dst) const noexcept;

  // s^(-t/512) overflows float32 from about 36,000 positions on.
  static constexpr int kMaxPositions = 32768;

 private:
  RotaryRule rule_;
  std::vector<double> turns_;       // [dims / 2] frequency / 2 pi
  std::vector<double> log_scales_;  // [dims / 2] log s, 0 without xPos
};

}  // namespace toto
