// Every kernel in plain C++: the vector kernels must compute the same bits, and CPUs without them
// run these.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/f16.h"
#include "kernels/constants.h"
#include "kernels/tables.h"

namespace toto::kernels {
namespace {

// exp(x) = 2^n exp(r), |r| <= log(2) / 2: n is added to the exponent bits, exp(r) is a polynomial.
// Arguments are cut to the range in which 2^n is a normal number.
float exp_reference(float x) noexcept {
  x = x > kExpLowest ? x : kExpLowest;  // in this order NaN becomes a number, as in maxps
  x = x < kExpHighest ? x : kExpHighest;
  const float shifted = std::fma(x, kLog2E, kRoundMagic);  // n is in the lowest bits
  const float n = shifted - kRoundMagic;
  float r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  float p = kExpPoly[0];
  for (int i = 1; i < kExpTerms; ++i) p = std::fma(p, r, kExpPoly[i]);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                              (std::bit_cast<std::uint32_t>(shifted) << 23));
}

// x sigmoid(x), the activation of SwiGLU.
float silu_reference(float x) noexcept { return x / (1.0f + exp_reference(-x)); }

// A number as an unevaluated sum: `rest` collects the rounding errors of additions to `total`.
struct Unrounded {
  float total = 0;
  float rest = 0;

  void add(float x) noexcept {
    const float sum = total + x;
    const float part = sum - total;
    rest += (total - (sum - part)) + (x - part);
    total = sum;
  }
  float rounded() const noexcept { return total + rest; }
};

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};
// A stored weight as float32; bf16 is the upper half of its bits.
float widened(float weight) noexcept { return weight; }
float widened(Bf16 weight) noexcept {
  return std::bit_cast<float>(std::uint32_t{weight.bits} << 16);
}
float widened(F16 weight) noexcept { return from_f16(weight.bits); }

// The sum of one output column. The rounding error of a block starts the next one.
template <typename Weight>
Unrounded column_sum(const float* src, const Weight* column, int depth, int stride) noexcept {
  Unrounded sum;
  const int block = sum_block(depth);
  for (int k0 = 0; k0 < depth; k0 += block) {
    for (int k = k0; k < std::min(depth, k0 + block); ++k) {
      sum.rest = std::fma(src[k], widened(column[std::size_t(k) * stride]), sum.rest);
    }
    const float after = sum.total + sum.rest;
    sum.rest -= after - sum.total;
    sum.total = after;
  }
  return sum;
}

// Adds bias, applies the epilogue and writes dst for every row and column.
template <typename SumOf>
void write_panels(const GemmArgs& args, const SumOf& sum_of) noexcept {
  for (int panel = args.first_panel; panel < args.last_panel; ++panel) {
    const float* bias = args.bias + std::size_t(panel) * kPanel;
    for (int row = 0; row < args.rows; ++row) {
      float* dst_row = args.dst + row * args.dst_stride;
      const auto biased = [&](int c) {
        Unrounded y = sum_of(panel, row, c);
        y.add(bias[c]);
        return y;
      };
      if (args.epilogue == Epilogue::gate) {
        constexpr int kHalf = kPanel / 2;
        float* dst = dst_row + std::size_t(panel) * kHalf;
        for (int c = 0; c < kHalf; ++c) {
          dst[c] = silu_reference(biased(c).rounded()) * biased(kHalf + c).rounded();
        }
        continue;
      }
      float* dst = dst_row + std::size_t(panel) * kPanel;
      for (int c = 0; c < kPanel; ++c) {
        Unrounded y = biased(c);
        if (args.epilogue == Epilogue::add) y.add(dst[c]);
        dst[c] = args.epilogue == Epilogue::silu ? silu_reference(y.rounded()) : y.rounded();
      }
    }
  }
}

// Where a column lies in its panel; bf16 panels hold their columns in pairs (kernels.h).
constexpr int place_of(int column, const float*) { return column; }
constexpr int place_of(int column, const F16*) { return column; }
constexpr int place_of(int column, const Bf16*) { return bf16_place(column); }

template <typename Weight>
void gemm_floats(const GemmArgs& args) noexcept {
  write_panels(args, [&args](int panel, int row, int c) {
    const auto* weights =
        reinterpret_cast<const Weight*>(args.panels) + std::size_t(panel) * args.depth * kPanel;
    return column_sum(args.src + row * args.src_stride, weights + place_of(c, weights), args.depth,
                      kPanel);
  });
}

// Integer sums over groups of kScaleGroup terms are exact, so their order is free. Each group is
// scaled by the row's and the column's scale; groups are added in order.
void gemm_int8(const GemmArgs& args) noexcept {
  write_panels(args, [&args](int panel, int row, int c) {
    const std::byte* group = args.panels + panel * panel_bytes(DType::int8, args.depth);
    const std::int16_t* x = args.quantised.values + row * args.quantised.stride;
    const float* x_scale = args.quantised.scales + row * args.quantised.scale_stride;
    Unrounded y;
    for (int k0 = 0; k0 < args.depth; k0 += kScaleGroup, ++x_scale) {
      const auto* scales = reinterpret_cast<const float*>(group);
      const auto* weights = reinterpret_cast<const std::int8_t*>(scales + kPanel);
      const int terms = std::min(args.depth - k0, kScaleGroup), pairs = (terms + 1) / 2;
      std::int32_t sum = 0;
      for (int p = 0; p < pairs; ++p, x += 2) {
        const std::int8_t* pair = weights + (std::size_t(p) * kPanel + c) * 2;
        sum += x[0] * pair[0] + x[1] * pair[1];
      }
      y.total = std::fma(static_cast<float>(sum) * *x_scale, scales[c], y.total);
      group += kPanel * sizeof(float) + std::size_t(pairs) * 2 * kPanel;
    }
    return y;
  });
}

// One row as int16 with one scale per group. A group of zeros or denormals becomes zeros.
void quantise(const float* src, int depth, std::int16_t* values, float* scales) noexcept {
  for (int k0 = 0; k0 < depth; k0 += kScaleGroup) {
    const int k1 = std::min(depth, k0 + kScaleGroup);
    float largest = 0, poison = 0;  // poison becomes NaN if a value is: a maximum drops NaN
    for (int k = k0; k < k1; ++k) {
      largest = std::max(largest, std::fabs(src[k]));
      poison = std::fma(src[k], 0.0f, poison);
    }
    const float factor = largest > kSmallestGroup ? kLargestInt16 / largest : 0;
    for (int k = k0; k < k1; ++k) {  // adding kRoundMagic leaves the integer in the lowest bits
      values[k] = static_cast<std::int16_t>(
          std::bit_cast<std::int32_t>(std::fma(src[k], factor, kRoundMagic)) -
          std::bit_cast<std::int32_t>(kRoundMagic));
    }
    *scales++ = largest / kLargestInt16 + poison;
  }
  if (depth % 2 != 0) values[depth] = 0;
}

// Halves are added to each other until one sum is left: the order that vector registers can keep.
float add_pairwise(const float (&partial)[kPartialSums]) noexcept {
  float sums[kPartialSums];
  std::copy(std::begin(partial), std::end(partial), sums);
  for (int width = kPartialSums / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

// Term i goes to partial sum i % kPartialSums, on every instruction set.
float dot(const float* a, const float* b, int size) noexcept {
  float partial[kPartialSums] = {};
  for (int i = 0; i < size; ++i) {
    float& sum = partial[i % kPartialSums];
    sum = std::fma(a[i], b[i], sum);
  }
  return add_pairwise(partial);
}

// dst = src / sqrt(mean(src^2) + epsilon) * weight; no weight is a weight of 1.
void rms_norm(const float* src, const float* weight, double epsilon, float* dst,
              int size) noexcept {
  const double mean = static_cast<double>(dot(src, src, size)) / size;
  const double inverse = 1.0 / std::sqrt(mean + epsilon);
  for (int i = 0; i < size; ++i) {
    dst[i] = static_cast<float>(src[i] * inverse * (weight != nullptr ? weight[i] : 1.0f));
  }
}

// Rotary positions: pairs of neighbours are turned by their angle. a holds cosines, b sines with
// the sign of their place, both with the factors of xPos.
void rotate(const float* src, const float* a, const float* b, float* dst, int size) noexcept {
  for (int d = 0; d < size; d += 2) {
    const float even = src[d], odd = src[d + 1];
    dst[d] = std::fma(even, a[d], odd * b[d]);
    dst[d + 1] = std::fma(odd, a[d + 1], even * b[d + 1]);
  }
}

// Replaces scores by exp(score - highest) and returns their sum; the caller divides by it once, at
// the end.
float softmax_terms(float* scores, int size) noexcept {
  float highest = scores[0];
  for (int i = 1; i < size; ++i) highest = scores[i] > highest ? scores[i] : highest;
  float partial[kPartialSums] = {};
  for (int i = 0; i < size; ++i) {
    scores[i] = exp_reference(scores[i] - highest);
    partial[i % kPartialSums] += scores[i];
  }
  return add_pairwise(partial);
}

// scores[i] = query . key i. Keys lie in panels of kKeyPanel, transposed: [head_dim][kKeyPanel].
void score_keys(const AttendArgs& args, const KeyValues& part, float* scores) noexcept {
  for (int i = 0; i < part.count; ++i) {
    const float* panel = part.keys + std::size_t(i / kKeyPanel) * args.head_dim * kKeyPanel;
    scores[i] = column_sum(args.query, panel + i % kKeyPanel, args.head_dim, kKeyPanel).rounded();
  }
}

// dst[d] = sum of scores[i] * value_at(i)[d] / total, in blocks like every other sum.
template <typename ValueAt>
void weighted_mean(const float* scores, int count, float total, const ValueAt& value_at,
                   int head_dim, float* dst) noexcept {
  for (int d = 0; d < head_dim; ++d) {
    float sum = 0;
    for (int i0 = 0; i0 < count; i0 += kValueBlock) {
      float block = 0;
      for (int i = i0; i < std::min(count, i0 + kValueBlock); ++i) {
        block = std::fma(scores[i], value_at(i)[d], block);
      }
      sum += block;
    }
    dst[d] = sum / total;
  }
}

// Time-wise attention of one query and head: the keys of the shared context (prefix), then those of
// the path (tail).
void attend(const AttendArgs& args) noexcept {
  const int count = args.prefix.count + args.tail.count;
  score_keys(args, args.prefix, args.scores);
  score_keys(args, args.tail, args.scores + args.prefix.count);
  const float total = softmax_terms(args.scores, count);
  const auto value_at = [&args](int i) {
    const int in_tail = i - args.prefix.count;
    return in_tail < 0 ? args.prefix.values + std::size_t(i) * args.value_stride
                       : args.tail.values + std::size_t(in_tail) * args.value_stride;
  };
  weighted_mean(args.scores, count, total, value_at, args.head_dim, args.dst);
}

// Space-wise attention: over rows of one time step that have the same id; keys and values are rows
// of the pass itself.
void attend_rows(const AttendRowsArgs& args) noexcept {
  for (int i = 0; i < args.count; ++i) {
    args.scores[i] =
        dot(args.query, args.keys + args.rows[i] * args.stride, args.head_dim) * args.scale;
  }
  const float total = softmax_terms(args.scores, args.count);
  const auto value_at = [&args](int i) { return args.values + args.rows[i] * args.stride; };
  weighted_mean(args.scores, args.count, total, value_at, args.head_dim, args.dst);
}

// log(1 + z), given one = 1 + z and inverse = 1 / one.
float log1p_given(float z, float one, float inverse) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(one);
  const std::uint32_t biased = bits - kSqrtHalfBits + kOneBits;
  const float mantissa = std::bit_cast<float>(bits - (biased & kExponentBits) + kOneBits);
  const float exponent = static_cast<float>(static_cast<int>(biased >> 23) - 127);
  const float f = mantissa - 1.0f;
  float p = kLogPoly[0];
  for (int i = 1; i < kLogTerms; ++i) p = std::fma(p, f, kLogPoly[i]);
  const float f2 = f * f;
  const float curve = std::fma(f2 * f, p, f2 * -0.5f);
  const float lost = (z - (one - 1.0f)) * inverse;
  return std::fma(exponent, kLn2, f) + (curve + lost);
}

// exp(x^2) erfc(x) for x >= 0, as a quotient of two polynomials.
float erfcx(float x) noexcept {
  float above = kErfcxAbove[0], below = kErfcxBelow[0];
  for (int i = 1; i < kErfcxTerms; ++i) above = std::fma(above, x, kErfcxAbove[i]);
  for (int i = 1; i <= kErfcxTerms; ++i) below = std::fma(below, x, kErfcxBelow[i]);
  return above / below;
}

// Probability below and above x, density at x, and the partial mean above x, of some components.
struct LaneSums {
  float below = 0, above = 0, density = 0, mean_above = 0;
};

// Adds one Student-T component. With z = t^2 / df and y = 1 / (1 + z) the tail is y^(df / 2) times
// a series in y, kStudentShift terms of it here, and a remainder in s = log(1 + z).
// joined_mixture.cc computes the coefficients.
void add_student_lane(const StudentBlock& block, int lane, float x_high, float x_low,
                      LaneSums& sums) noexcept {
  const float loc = block.loc_high[lane];
  const float t = ((x_high - loc) + (x_low - block.loc_low[lane])) * block.inv_scale[lane];
  const float root_z = std::min(kStudentReach, std::fabs(t) * block.inv_sqrt_df[lane]);
  const float z = root_z * root_z;
  const float spread = 1.0f + z;
  const float y = 1.0f / spread;
  const float s = log1p_given(z, spread, y);
  const float half_df = block.half_df[lane];
  const float power = exp_reference(0.0f - half_df * s);  // y^a
  const float root_y = std::sqrt(y);
  const float root_u = std::sqrt((half_df + (kStudentShift - 0.25f)) * s);
  float far = block.far[3][lane];
  for (int i = 2; i >= 0; --i) far = std::fma(far, s, block.far[i][lane]);
  float near = block.near[kStudentShift - 1][lane];
  for (int i = kStudentShift - 2; i >= 0; --i) near = std::fma(near, y, block.near[i][lane]);
  const float remainder = std::fma(root_u, far, erfcx(root_u));
  const float terms =
      root_y * std::fma(root_z, near, ((y * y) * y * std::sqrt(root_y)) * remainder);
  const float weight = block.weight[lane];
  const float tail = weight * 0.5f * power * terms;
  const float body = weight - tail;
  const float above = std::signbit(t) ? body : tail;
  const float density = block.peak[lane] * (power * root_y);
  sums.below += std::signbit(t) ? tail : body;
  sums.above += above;
  sums.density += density;
  sums.mean_above += std::fma(loc, above, block.moment[lane] * (spread * density));
}

// Runs of blocks are summed in float, runs in double: 256 paths of 24 components stay right to
// 4e-8.
StudentSums student_sums(const StudentBlock* blocks, int num_blocks, double x) noexcept {
  const float x_high = static_cast<float>(x);
  const float x_low = static_cast<float>(x - x_high);
  StudentSums lanes[kStudentBlock] = {};
  for (int first = 0; first < num_blocks; first += kStudentRun) {
    for (int lane = 0; lane < kStudentBlock; ++lane) {
      LaneSums sums;
      for (int i = first; i < std::min(num_blocks, first + kStudentRun); ++i) {
        add_student_lane(blocks[i], lane, x_high, x_low, sums);
      }
      lanes[lane].below += sums.below;
      lanes[lane].above += sums.above;
      lanes[lane].density += sums.density;
      lanes[lane].mean_above += sums.mean_above;
    }
  }
  for (int width = kStudentBlock / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i].below += lanes[i + width].below;
      lanes[i].above += lanes[i + width].above;
      lanes[i].density += lanes[i + width].density;
      lanes[i].mean_above += lanes[i + width].mean_above;
    }
  }
  return lanes[0];
}

// acc += weight * src, in double.
void accumulate(double* acc, double weight, const float* src, int size) noexcept {
  for (int i = 0; i < size; ++i) acc[i] = std::fma(weight, static_cast<double>(src[i]), acc[i]);
}

}  // namespace

const Kernels kReferenceKernels{.isa = Isa::reference,
                                .name = "reference",
                                .gemm = gemm_floats<float>,
                                .gemm_f16 = gemm_floats<F16>,
                                .gemm_bf16 = gemm_floats<Bf16>,
                                .gemm_int8 = gemm_int8,
                                .quantise = quantise,
                                .rms_norm = rms_norm,
                                .rotate = rotate,
                                .attend = attend,
                                .attend_rows = attend_rows,
                                .student_sums = student_sums,
                                .accumulate = accumulate};

}  // namespace toto::kernels
