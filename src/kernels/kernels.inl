// The vector kernels, written once for any Vec. Included inside a target region and namespace,
// after the vec_*.h of the instruction set. Sums run in the order that kernels.h defines.

// See constants.h for the method and its error.
TOTO_INLINE Vec exp(Vec x) {
  x = min(max(x, broadcast(kExpLowest)), broadcast(kExpHighest));
  const Vec shifted = fma(x, broadcast(kLog2E), broadcast(kRoundMagic));
  const Vec n = sub(shifted, broadcast(kRoundMagic));
  Vec r = fma(n, broadcast(-kLn2High), x);
  r = fma(n, broadcast(-kLn2Low), r);
  Vec p = broadcast(kExpPoly[0]);
  for (int i = 1; i < kExpTerms; ++i) p = fma(p, r, broadcast(kExpPoly[i]));
  return scale_by_power(p, shifted);
}

TOTO_INLINE Vec silu(Vec x) { return div(x, add(broadcast(1.0f), exp(sub(zero(), x)))); }

#include "kernels/gemm.inl"

// Copies the last size % kPartialSums elements into a block whose rest is zero.
TOTO_INLINE void load_rest(const float* src, int size, float* block) {
  for (int i = 0; i < kPartialSums; ++i) block[i] = i < size ? src[i] : 0.0f;
}

TOTO_INLINE float dot(const float* a, const float* b, int size) {
  PartialSums sums = zero_sums();
  int i = 0;
  for (; i + kPartialSums <= size; i += kPartialSums) sums = multiply_add(sums, a + i, b + i);
  if (i < size) {
    float rest_a[kPartialSums], rest_b[kPartialSums];
    load_rest(a + i, size - i, rest_a);
    load_rest(b + i, size - i, rest_b);
    sums = multiply_add(sums, rest_a, rest_b);
  }
  return add_pairwise(sums);
}

// The square root and the scaling run in double; each result is rounded once.
void rms_norm(const float* src, const float* weight, double epsilon, float* dst,
              int size) noexcept {
  static_assert(Doubles::kLanes <= int(sizeof kOnes / sizeof kOnes[0]));
  const double mean = static_cast<double>(dot(src, src, size)) / size;
  const double inverse = 1.0 / square_root(mean + epsilon);
  const float* factors = weight != nullptr ? weight : kOnes;
  const int step = weight != nullptr ? 1 : 0;
  // src, weight and dst are padded with zeros to whole vectors.
  for (int i = 0; i < size; i += Doubles::kLanes) {
    scale_some(dst + i, src + i, inverse, factors + i * step);
  }
}

void rotate(const float* src, const float* a, const float* b, float* dst, int size) noexcept {
  int d = 0;
  for (; d + Vec::kLanes <= size; d += Vec::kLanes) {
    const Vec x = load(src + d);
    store(dst + d, fma(x, load(a + d), mul(swap_pairs(x), load(b + d))));
  }
  for (; d < size; d += 2) {
    const float even = src[d], odd = src[d + 1];
    dst[d] = fma_one(even, a[d], odd * b[d]);
    dst[d + 1] = fma_one(odd, a[d + 1], even * b[d + 1]);
  }
}

// A maximum has the same bits in any order of evaluation.
TOTO_INLINE float highest_of(const float* values, int size) {
  float highest = values[0];
  int i = 0;
  if (size >= Vec::kLanes) {
    Vec lanes = load(values);
    for (i = Vec::kLanes; i + Vec::kLanes <= size; i += Vec::kLanes) {
      lanes = max(load(values + i), lanes);
    }
    float stored[Vec::kLanes];
    store(stored, lanes);
    for (const float lane : stored) highest = lane > highest ? lane : highest;
  }
  for (; i < size; ++i) highest = values[i] > highest ? values[i] : highest;
  return highest;
}

// scores -> exp(scores - max) in place; returns their sum.
TOTO_INLINE float softmax_terms(float* scores, int size) {
  const float highest = highest_of(scores, size);
  const Vec shift = broadcast(highest);
  float sums[kPartialSums] = {};
  for (int i = 0; i < size; i += kPartialSums) {
    for (int lane = 0; lane < kPartialSums; lane += Vec::kLanes) {
      store(scores + i + lane, exp(sub(load(scores + i + lane), shift)));
    }
    // Scratch values past the end must contribute exactly zero.
    for (int j = size - i < 0 ? 0 : size - i; j < kPartialSums; ++j) scores[i + j] = 0.0f;
    for (int lane = 0; lane < kPartialSums; lane += Vec::kLanes) {
      store(sums + lane, add(load(sums + lane), load(scores + i + lane)));
    }
  }
  return add_pairwise(load_sums(sums));
}

// Independent sums: a multiply-add takes four cycles, and two can start in each cycle.
constexpr int kChains = 4;

// scores[i] = query . key i for the keys of kCount vectors.
template <int kCount>
TOTO_INLINE void score_some_keys(const AttendArgs& args, const float* keys, int first,
                                 float* scores) {
  const int block = sum_block(args.head_dim);
  const float* columns[kCount];
  Vec total[kCount], sum[kCount];
  for (int j = 0; j < kCount; ++j) {
    const int key = first + j * Vec::kLanes;
    columns[j] = keys + std::size_t(key / kKeyPanel) * kKeyPanel * args.head_dim + key % kKeyPanel;
    total[j] = sum[j] = zero();
  }
  for (int d0 = 0; d0 < args.head_dim; d0 += block) {
    const int d1 = args.head_dim < d0 + block ? args.head_dim : d0 + block;
    for (int d = d0; d < d1; ++d) {
      const Vec query = broadcast(args.query[d]);
      for (int j = 0; j < kCount; ++j) {
        sum[j] = fma(query, load(columns[j] + std::size_t(d) * kKeyPanel), sum[j]);
      }
    }
    for (int j = 0; j < kCount; ++j) {
      const Vec after = add(total[j], sum[j]);
      sum[j] = sub(sum[j], sub(after, total[j]));
      total[j] = after;
    }
  }
  for (int j = 0; j < kCount; ++j) {
    store(scores + first + j * Vec::kLanes, add(total[j], sum[j]));
  }
}

// Scores of all keys up to the end of the last panel, including padding.
TOTO_INLINE void score_keys(const AttendArgs& args, const KeyValues& part, float* scores) {
  const int end = (part.count + kKeyPanel - 1) / kKeyPanel * kKeyPanel;
  int first = 0;
  for (; first + kChains * Vec::kLanes <= end; first += kChains * Vec::kLanes) {
    score_some_keys<kChains>(args, part.keys, first, scores);
  }
  for (; first < end; first += Vec::kLanes) score_some_keys<1>(args, part.keys, first, scores);
}

struct CachedValues {
  const AttendArgs& args;
  TOTO_INLINE_MEMBER const float* at(int i) const {
    const int in_tail = i - args.prefix.count;
    return in_tail < 0 ? args.prefix.values + std::size_t(i) * args.value_stride
                       : args.tail.values + std::size_t(in_tail) * args.value_stride;
  }
};

struct ScatteredValues {
  const AttendRowsArgs& args;
  TOTO_INLINE_MEMBER const float* at(int i) const {
    return args.values + args.rows[i] * args.stride;
  }
};

// dst[d] = sum of scores[i] * values.at(i)[d] / total, for kCount vectors of d.
template <int kCount, typename Values>
TOTO_INLINE void weighted_some(const float* scores, int count, const Vec& divisor,
                               const Values& values, int d, Vec* dst) {
  Vec total[kCount];
  for (int j = 0; j < kCount; ++j) total[j] = zero();
  for (int i0 = 0; i0 < count; i0 += kValueBlock) {
    const int i1 = count < i0 + kValueBlock ? count : i0 + kValueBlock;
    Vec block[kCount];
    for (int j = 0; j < kCount; ++j) block[j] = zero();
    for (int i = i0; i < i1; ++i) {
      const Vec score = broadcast(scores[i]);
      const float* value = values.at(i) + d;
      for (int j = 0; j < kCount; ++j) {
        block[j] = fma(score, load(value + j * Vec::kLanes), block[j]);
      }
    }
    for (int j = 0; j < kCount; ++j) total[j] = add(total[j], block[j]);
  }
  for (int j = 0; j < kCount; ++j) dst[j] = div(total[j], divisor);
}

template <typename Values>
TOTO_INLINE void weighted_mean(const float* scores, int count, float sum_of_scores,
                               const Values& values, int head_dim, float* dst) {
  const Vec divisor = broadcast(sum_of_scores);
  int d = 0;
  for (; d + kChains * Vec::kLanes <= head_dim; d += kChains * Vec::kLanes) {
    Vec some[kChains];
    weighted_some<kChains>(scores, count, divisor, values, d, some);
    for (int j = 0; j < kChains; ++j) store(dst + d + j * Vec::kLanes, some[j]);
  }
  for (; d < head_dim; d += Vec::kLanes) {
    Vec one[1];
    weighted_some<1>(scores, count, divisor, values, d, one);
    if (d + Vec::kLanes <= head_dim) {
      store(dst + d, one[0]);
    } else {
      float rest[Vec::kLanes];
      store(rest, one[0]);
      for (int j = 0; d + j < head_dim; ++j) dst[d + j] = rest[j];
    }
  }
}

// One query: scores, softmax, weighted mean of the values.
void attend(const AttendArgs& args) noexcept {
  const int count = args.prefix.count + args.tail.count;
  // The tail's scores overwrite what the prefix's last panel wrote past its end.
  score_keys(args, args.prefix, args.scores);
  score_keys(args, args.tail, args.scores + args.prefix.count);
  const float sum = softmax_terms(args.scores, count);
  weighted_mean(args.scores, count, sum, CachedValues{args}, args.head_dim, args.dst);
}

void attend_rows(const AttendRowsArgs& args) noexcept {
  for (int i = 0; i < args.count; ++i) {
    args.scores[i] =
        dot(args.query, args.keys + args.rows[i] * args.stride, args.head_dim) * args.scale;
  }
  const float sum = softmax_terms(args.scores, args.count);
  weighted_mean(args.scores, args.count, sum, ScatteredValues{args}, args.head_dim, args.dst);
}

void accumulate(double* acc, double weight, const float* src, int size) noexcept {
  int i = 0;
  for (; i + Doubles::kLanes <= size; i += Doubles::kLanes)
    accumulate_some(acc + i, weight, src + i);
  for (; i < size; ++i) acc[i] = fma_one(weight, static_cast<double>(src[i]), acc[i]);
}

#include "kernels/student.inl"

// Constant-initialised: no code of this instruction set runs before the CPU is known to support it.
inline constexpr Kernels kTable{.isa = kIsa,
                                .name = kName,
                                .gemm = gemm<float>,
                                .gemm_f16 = gemm<F16>,
                                .gemm_bf16 = gemm<Bf16>,
                                .gemm_int8 = gemm<std::int8_t>,
                                .quantise = quantise,
                                .rms_norm = rms_norm,
                                .rotate = rotate,
                                .attend = attend,
                                .attend_rows = attend_rows,
                                .student_sums = student_sums,
                                .accumulate = accumulate};
