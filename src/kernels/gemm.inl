// The packed matrix product over Vec. Included like kernels.inl, before it.
//
// A tile is kRows rows and a panel's columns, whole, so that the weights are one stream; its
// running sums stay in registers. Loops over rows and vectors are expanded by constant index: a
// compiler that sees an array and a loop keeps the sums on the stack instead.

template <int kValue>
struct Constant {
  static constexpr int value = kValue;  // NOLINT: named as in std::integral_constant
};
template <int... kValues>
struct Constants {};
template <int kCount, int... kValues>
struct CountDown : CountDown<kCount - 1, kCount - 1, kValues...> {};
template <int... kValues>
struct CountDown<0, kValues...> {
  using Type = Constants<kValues...>;
};
template <int kCount>
using Indices = typename CountDown<kCount>::Type;  // 0, 1, ... kCount - 1

template <int... kIndices, typename Function>
TOTO_INLINE void expand(Constants<kIndices...>, const Function& function) {
  (function(Constant<kIndices>{}), ...);
}

// Totals of kRows rows and one panel, and what rounding kept out of them.
template <int kRows>
struct PanelSums {
  alignas(64) float total[kRows * kPanel];
  alignas(64) float rest[kRows * kPanel];
};

inline constexpr int kVectors = kPanel / Vec::kLanes;
inline constexpr int kUnrolled =
    TOTO_SMALL_TILES ? 2 : 8;  // terms between two looks at the loop's end
inline constexpr int kCacheLine = 64;

// Weights to fetch while computing: `lines` cache lines for each kUnrolled terms.
struct Ahead {
  const std::byte* next = nullptr;
  int lines = 0;

  TOTO_INLINE_MEMBER void fetch() {
    for (int i = 0; i < lines; ++i) prefetch(next + i * kCacheLine);
    next += lines * kCacheLine;
  }
};

// One tile of float32 or bf16 weights.
template <int kRows, typename Weight>
TOTO_INLINE void tile(const GemmArgs& args, int row, const Weight* weights, Ahead ahead,
                      PanelSums<kRows>& panel_sums) {
  using Sums = Indices<kRows * kVectors>;
  Vec sums[kRows * kVectors];
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
    sums[i.value] = zero();
    store(panel_sums.total + i.value * Vec::kLanes, zero());
  });
  const float* rows[kRows];  // one pointer a row: offsets in terms of the stride would be spilled
  expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
    rows[r.value] = args.src + (row + r.value) * args.src_stride;
  });
  const auto advance = [&](int terms) TOTO_INLINE_MEMBER {
    weights += terms * kPanel;
    expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER { rows[r.value] += terms; });
  };
  const auto multiply_add = [&](int k) TOTO_INLINE_MEMBER {
    Vec w[kVectors];
    expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
      w[v.value] = load(weights + k * kPanel + v.value * Vec::kLanes);
    });
    expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
      const Vec x = broadcast(rows[r.value][k]);
      expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
        Vec& sum = sums[r.value * kVectors + v.value];
        sum = fma(x, w[v.value], sum);
      });
    });
  };
  const int block = sum_block(args.depth);
  for (int left = args.depth; left > 0; left -= block) {
    int terms = left < block ? left : block;
    for (; terms >= kUnrolled; terms -= kUnrolled) {
      expand(Indices<kUnrolled>{}, [&](auto k) TOTO_INLINE_MEMBER { multiply_add(k.value); });
      advance(kUnrolled);
      ahead.fetch();
    }
    for (; terms > 0; --terms) {
      multiply_add(0);
      advance(1);
    }
    expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
      Vec& sum = sums[i.value];
      float* total = panel_sums.total + i.value * Vec::kLanes;
      const Vec before = load(total);
      const Vec after = add(before, sum);
      sum = sub(sum, sub(after, before));  // what the total had no room for begins the next block
      store(total, after);
    });
  }
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
    store(panel_sums.rest + i.value * Vec::kLanes, sums[i.value]);
  });
}

// A number as the sum of two: what addition rounds away stays in `rest`.
struct Unrounded {
  Vec total, rest;
};
TOTO_INLINE Unrounded plus(Unrounded a, Vec x) {
  const Vec sum = add(a.total, x);
  const Vec part = sub(sum, a.total);
  const Vec lost = add(sub(a.total, sub(sum, part)), sub(x, part));
  return {sum, add(a.rest, lost)};
}
TOTO_INLINE Vec rounded(Unrounded a) { return add(a.total, a.rest); }

TOTO_INLINE void finish_row(const GemmArgs& args, int panel, const float* total, const float* rest,
                            float* dst_row) {
  constexpr int kHalf = kPanel / 2;
  const float* bias = args.bias + std::size_t(panel) * kPanel;
  const auto biased = [&](int c) TOTO_INLINE_MEMBER {
    return plus({load(total + c), load(rest + c)}, load(bias + c));
  };
  if (args.epilogue == Epilogue::gate) {
    float* dst = dst_row + std::size_t(panel) * kHalf;
    for (int c = 0; c < kHalf; c += Vec::kLanes) {
      store(dst + c, mul(silu(rounded(biased(c))), rounded(biased(kHalf + c))));
    }
    return;
  }
  float* dst = dst_row + std::size_t(panel) * kPanel;
  for (int c = 0; c < kPanel; c += Vec::kLanes) {
    Unrounded y = biased(c);
    if (args.epilogue == Epilogue::add) y = plus(y, load(dst + c));
    store(dst + c, rounded(y));
  }
}

// One tile of int8 weights: exact integer sums within a group of terms, float32 across groups.
template <int kRows>
TOTO_INLINE void tile(const GemmArgs& args, int row, const std::int8_t* weights, Ahead ahead,
                      PanelSums<kRows>& panel_sums) {
  using Sums = Indices<kRows * kVectors>;
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
    store(panel_sums.total + i.value * Vec::kLanes, zero());
    store(panel_sums.rest + i.value * Vec::kLanes, zero());
  });
  const std::int16_t* rows[kRows];
  const float* row_scales[kRows];
  expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
    rows[r.value] = args.quantised.values + (row + r.value) * args.quantised.stride;
    row_scales[r.value] = args.quantised.scales + (row + r.value) * args.quantised.scale_stride;
  });
  for (int left = args.depth, group = 0; left > 0; left -= kScaleGroup, ++group) {
    const auto* scales = reinterpret_cast<const float*>(weights);
    weights += kPanel * sizeof(float);
    Ints sums[kRows * kVectors];
    expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER { sums[i.value] = zero_ints(); });
    const auto multiply_add = [&](int pair) TOTO_INLINE_MEMBER {
      Ints w[kVectors];
      expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
        w[v.value] = load_pairs(weights + (pair * kPanel + v.value * Vec::kLanes) * 2);
      });
      expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
        const Ints x = broadcast_pair(rows[r.value] + pair * 2);
        expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
          Ints& sum = sums[r.value * kVectors + v.value];
          sum = multiply_add_pairs(x, w[v.value], sum);
        });
      });
    };
    const auto advance = [&](int pairs) TOTO_INLINE_MEMBER {
      weights += pairs * kPanel * 2;
      expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER { rows[r.value] += pairs * 2; });
    };
    int pairs = ((left < kScaleGroup ? left : kScaleGroup) + 1) / 2;
    constexpr int kPairs = kUnrolled / 2;
    for (; pairs >= kPairs; pairs -= kPairs) {
      expand(Indices<kPairs>{}, [&](auto p) TOTO_INLINE_MEMBER { multiply_add(p.value); });
      advance(kPairs);
      ahead.fetch();
    }
    for (; pairs > 0; --pairs) {
      multiply_add(0);
      advance(1);
    }
    expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
      float* total = panel_sums.total + i.value * Vec::kLanes;
      const Vec scaled =
          mul(to_floats(sums[i.value]), broadcast(row_scales[i.value / kVectors][group]));
      store(total, fma(scaled, load(scales + i.value % kVectors * Vec::kLanes), load(total)));
    });
  }
}

void quantise(const float* src, int depth, std::int16_t* values, float* scales) noexcept {
  for (int k0 = 0; k0 < depth; k0 += kScaleGroup) {
    const int terms = depth - k0 < kScaleGroup ? depth - k0 : kScaleGroup;
    alignas(64) float group[kScaleGroup];  // padded with zeros: they change nothing
    for (int k = 0; k < kScaleGroup; ++k) group[k] = k < terms ? src[k0 + k] : 0.0f;
    Vec largest_of = zero();
    for (int k = 0; k < kScaleGroup; k += Vec::kLanes)
      largest_of = max(absolute(load(group + k)), largest_of);
    float lanes[Vec::kLanes], largest = 0;
    store(lanes, largest_of);
    for (const float lane : lanes) largest = lane > largest ? lane : largest;
    const Vec factor = broadcast(largest > kNothing ? kLargestInt16 / largest : 0.0f);
    std::int16_t rounded_group[kScaleGroup];
    for (int k = 0; k < kScaleGroup; k += Vec::kLanes) {
      const Vec magic = broadcast(kRoundMagic);
      store_difference(rounded_group + k, fma(load(group + k), factor, magic), magic);
    }
    const int even = (terms + 1) / 2 * 2;
    for (int k = 0; k < even; ++k) values[k0 + k] = rounded_group[k];
    *scales++ = largest / kLargestInt16;
  }
}

template <int kRows, typename Weight>
void gemm_rows(const GemmArgs& args, int row, int panel, const std::byte* weights,
               Ahead ahead) noexcept {
  PanelSums<kRows> sums;
  tile(args, row, reinterpret_cast<const Weight*>(weights), ahead, sums);
  for (int r = 0; r < kRows; ++r) {
    finish_row(args, panel, sums.total + r * kPanel, sums.rest + r * kPanel,
               args.dst + (row + r) * args.dst_stride);
  }
}

using GemmRows = void (*)(const GemmArgs&, int row, int panel, const std::byte* weights,
                          Ahead) noexcept;
struct RowTiles {
  GemmRows entries[kTileRows];  // entries[n - 1] handles n rows
};
template <typename Weight, int... kRows>
constexpr RowTiles make_row_tiles(Constants<kRows...>) {
  return {{gemm_rows<kRows + 1, Weight>...}};
}

constexpr DType type_of(float) { return DType::f32; }
constexpr DType type_of(Bf16) { return DType::bf16; }
constexpr DType type_of(std::int8_t) { return DType::int8; }

template <typename Weight>
void gemm(const GemmArgs& args) noexcept {
  static constexpr RowTiles kRowTiles = make_row_tiles<Weight>(Indices<kTileRows>{});
  if (args.rows == 0) return;
  const int tiles = (args.rows + kTileRows - 1) / kTileRows;
  // The tiles of a panel share in fetching the next one. With one tile the hardware is faster, with
  // many the weights are no longer what is waited for.
  constexpr int kMaxFetchingTiles = 8;
  constexpr int kLines = kUnrolled * kPanel * int{sizeof(Weight)} / kCacheLine;
  const bool fetches = tiles > 1 && tiles <= kMaxFetchingTiles;
  const int lines = fetches ? (kLines + tiles - 1) / tiles : 0;
  const std::size_t bytes = panel_bytes(type_of(Weight{}), args.depth);
  for (int panel = args.first_panel; panel < args.last_panel; ++panel) {
    const std::byte* weights = args.panels + panel * bytes;
    Ahead ahead;
    if (panel + 1 < args.last_panel) ahead = {weights + bytes, lines};
    for (int t = 0; t < tiles; ++t) {  // rows split evenly: 16 rows as 8 + 8, not 12 + 4
      const int begin = static_cast<int>(static_cast<long long>(args.rows) * t / tiles);
      const int end = static_cast<int>(static_cast<long long>(args.rows) * (t + 1) / tiles);
      kRowTiles.entries[end - begin - 1](args, begin, panel, weights, ahead);
      ahead.next += bytes / kLines * ahead.lines;
    }
  }
}
