// The vector kernels, written once over Vec. Included inside a target region and namespace, after
// the vec_*.h of the instruction set. Sums run in the order kernels.h prescribes.

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

// Sums of kRows rows and one panel on their way: the total and what its additions rounded away.
template <int kRows>
struct PanelSums {
  alignas(64) float total[kRows * kPanel];
  alignas(64) float compensation[kRows * kPanel];
};

TOTO_INLINE void add_block(float* total, float* compensation, Vec block) {
  const Vec before = load(total);
  const Vec sum = add(before, block);
  store(compensation, add(load(compensation), sub(block, sub(sum, before))));
  store(total, sum);
}

// Adds the products of `count` terms, at most kSumBlock, for kRows rows and two vectors of columns.
template <int kRows>
TOTO_INLINE void sum_block(const float* src, std::size_t src_stride, const float* weights,
                           int count, float* total, float* compensation) {
  Vec left[kRows], right[kRows];
  for (int r = 0; r < kRows; ++r) left[r] = right[r] = zero();
  for (int k = 0; k < count; ++k) {
    const Vec w0 = load(weights + k * kPanel);
    const Vec w1 = load(weights + k * kPanel + Vec::kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vec x = broadcast(src[r * src_stride + k]);
      left[r] = fma(x, w0, left[r]);
      right[r] = fma(x, w1, right[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    add_block(total + r * kPanel, compensation + r * kPanel, left[r]);
    add_block(total + r * kPanel + Vec::kLanes, compensation + r * kPanel + Vec::kLanes, right[r]);
  }
}

template <int kRows>
TOTO_INLINE void tile(const GemmArgs& args, const float* src, const float* weights, float* total,
                      float* compensation) {
  int k = 0;
  for (; k + kSumBlock <= args.depth; k += kSumBlock) {
    sum_block<kRows>(src + k, args.src_stride, weights + std::size_t(k) * kPanel, kSumBlock, total,
                     compensation);
  }
  if (k < args.depth) {
    sum_block<kRows>(src + k, args.src_stride, weights + std::size_t(k) * kPanel, args.depth - k,
                     total, compensation);
  }
}

TOTO_INLINE void finish_row(const GemmArgs& args, int panel, const float* y, float* dst_row) {
  constexpr int kHalf = kPanel / 2;
  const float* bias = args.bias + std::size_t(panel) * kPanel;
  if (args.epilogue == Epilogue::gate) {
    float* dst = dst_row + std::size_t(panel) * kHalf;
    for (int c = 0; c < kHalf; c += Vec::kLanes) {
      const Vec gate = add(load(y + c), load(bias + c));
      const Vec up = add(load(y + kHalf + c), load(bias + kHalf + c));
      store(dst + c, mul(silu(gate), up));
    }
    return;
  }
  float* dst = dst_row + std::size_t(panel) * kPanel;
  for (int c = 0; c < kPanel; c += Vec::kLanes) {
    Vec result = add(load(y + c), load(bias + c));
    if (args.epilogue == Epilogue::add) result = add(load(dst + c), result);
    store(dst + c, result);
  }
}

template <int kRows>
void gemm_rows(const GemmArgs& args, int panel, int row) noexcept {
  PanelSums<kRows> sums;
  for (int i = 0; i < kRows * kPanel; i += Vec::kLanes) {
    store(sums.total + i, zero());
    store(sums.compensation + i, zero());
  }
  const float* src = args.src + row * args.src_stride;
  const float* weights = args.panels + std::size_t(panel) * args.depth * kPanel;
  for (int c = 0; c < kPanel; c += 2 * Vec::kLanes) {
    tile<kRows>(args, src, weights + c, sums.total + c, sums.compensation + c);
  }
  for (int i = 0; i < kRows * kPanel; i += Vec::kLanes) {
    store(sums.total + i, add(load(sums.total + i), load(sums.compensation + i)));
  }
  for (int r = 0; r < kRows; ++r) {
    finish_row(args, panel, sums.total + r * kPanel, args.dst + (row + r) * args.dst_stride);
  }
}

using GemmRows = void (*)(const GemmArgs&, int panel, int row) noexcept;

template <int kRows>
struct RowTiles {  // entries[n] handles n rows
  GemmRows entries[kRows + 1];
};

template <int... kRows>
struct Counts {};
template <int kCount, int... kRows>
struct CountTo : CountTo<kCount - 1, kCount, kRows...> {};
template <int... kRows>
struct CountTo<0, kRows...> {
  using Type = Counts<kRows...>;
};

template <int... kRows>
constexpr RowTiles<kTileRows> make_row_tiles(Counts<kRows...>) {
  return {{nullptr, gemm_rows<kRows>...}};
}
inline constexpr RowTiles<kTileRows> kRowTiles = make_row_tiles(CountTo<kTileRows>::Type{});

void gemm(const GemmArgs& args) noexcept {
  if (args.rows == 0) return;
  const int tiles = (args.rows + kTileRows - 1) / kTileRows;
  for (int panel = args.first_panel; panel < args.last_panel; ++panel) {
    for (int t = 0; t < tiles; ++t) {  // rows split evenly: 16 rows as 8 + 8, not 12 + 4
      const int begin = static_cast<int>(static_cast<long long>(args.rows) * t / tiles);
      const int end = static_cast<int>(static_cast<long long>(args.rows) * (t + 1) / tiles);
      kRowTiles.entries[end - begin](args, panel, begin);
    }
  }
}

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

void rms_norm(const float* src, const float* weight, float* dst, int size) noexcept {
  const double mean = static_cast<double>(dot(src, src, size)) / size;
  const double inverse = 1.0 / square_root(mean + kNormEpsilon);
  // src, weight and dst are padded with zeros to whole vectors.
  for (int i = 0; i < size; i += Doubles::kLanes) scale_some(dst + i, src + i, inverse, weight + i);
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

// scores -> exp(scores - max) in place; returns their sum.
TOTO_INLINE float softmax_terms(float* scores, int size) {
  float highest = scores[0];
  for (int i = 1; i < size; ++i) highest = scores[i] > highest ? scores[i] : highest;
  const Vec shift = broadcast(highest);
  float sums[kPartialSums] = {};
  for (int i = 0; i < size; i += kPartialSums) {
    for (int lane = 0; lane < kPartialSums; lane += Vec::kLanes) {
      store(scores + i + lane, exp(sub(load(scores + i + lane), shift)));
    }
    // Past the end stand scratch values: their terms must be exactly nothing.
    for (int j = size - i < 0 ? 0 : size - i; j < kPartialSums; ++j) scores[i + j] = 0.0f;
    for (int lane = 0; lane < kPartialSums; lane += Vec::kLanes) {
      store(sums + lane, add(load(sums + lane), load(scores + i + lane)));
    }
  }
  return add_pairwise(load_sums(sums));
}

// scores[i] = query . key i, a panel of keys at a time.
TOTO_INLINE void score_keys(const AttendArgs& args, const KeyValues& part, float* scores) {
  for (int first = 0; first < part.count; first += kKeyPanel) {
    const float* panel = part.keys + std::size_t(first) * args.head_dim;
    for (int lane = 0; lane < kKeyPanel; lane += Vec::kLanes) {
      Vec total = zero(), compensation = zero();
      for (int d0 = 0; d0 < args.head_dim; d0 += kSumBlock) {
        const int d1 = args.head_dim < d0 + kSumBlock ? args.head_dim : d0 + kSumBlock;
        Vec block = zero();
        for (int d = d0; d < d1; ++d) {
          block =
              fma(broadcast(args.query[d]), load(panel + std::size_t(d) * kKeyPanel + lane), block);
        }
        const Vec sum = add(total, block);
        compensation = add(compensation, sub(block, sub(sum, total)));
        total = sum;
      }
      total = add(total, compensation);
      store(scores + first + lane, total);
    }
  }
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

// dst[d] = sum of scores[i] * values.at(i)[d] / total
template <typename Values>
TOTO_INLINE void weighted_mean(const float* scores, int count, float sum_of_scores,
                               const Values& values, int head_dim, float* dst) {
  const Vec divisor = broadcast(sum_of_scores);
  for (int d = 0; d < head_dim; d += Vec::kLanes) {
    Vec total = zero();
    for (int i0 = 0; i0 < count; i0 += kValueBlock) {
      const int i1 = count < i0 + kValueBlock ? count : i0 + kValueBlock;
      Vec block = zero();
      for (int i = i0; i < i1; ++i)
        block = fma(broadcast(scores[i]), load(values.at(i) + d), block);
      total = add(total, block);
    }
    total = div(total, divisor);
    if (d + Vec::kLanes <= head_dim) {
      store(dst + d, total);
    } else {
      float rest[Vec::kLanes];
      store(rest, total);
      for (int j = 0; d + j < head_dim; ++j) dst[d + j] = rest[j];
    }
  }
}

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

// Constant-initialised: no code of this instruction set runs before the CPU was asked for it.
inline constexpr Kernels kTable{.isa = kIsa,
                                .name = kName,
                                .gemm = gemm,
                                .rms_norm = rms_norm,
                                .rotate = rotate,
                                .attend = attend,
                                .attend_rows = attend_rows,
                                .accumulate = accumulate};
