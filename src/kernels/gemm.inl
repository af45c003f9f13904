// The packed matrix product over Vec. Included like kernels.inl, before it.
//
// A tile is kRows rows and a panel's columns, whole, so that the weights are one stream; its
// running sums stay in registers. Loops over rows and vectors are expanded by constant index: a
// compiler that sees an array and a loop keeps the sums on the stack instead.

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
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

inline constexpr int kUnrolled = 8;     // terms between two looks at the loop's end
inline constexpr int kLineFloats = 16;  // of a cache line
inline constexpr int kLinesPerTerms = kUnrolled * kPanel / kLineFloats;  // of weights a tile reads

// Weights to fetch while computing: `lines` cache lines for each kUnrolled terms.
struct Ahead {
  const float* next = nullptr;
  int lines = 0;
};

template <int kRows>
TOTO_INLINE void tile(const GemmArgs& args, const float* src, const float* weights, Ahead ahead,
                      PanelSums<kRows>& panel_sums) {
  constexpr int kVectors = kPanel / Vec::kLanes;
  using Sums = Indices<kRows * kVectors>;
  Vec sums[kRows * kVectors];
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
    sums[i.value] = zero();
    store(panel_sums.total + i.value * Vec::kLanes, zero());
  });
  const float* rows[kRows];  // one pointer a row: offsets in terms of the stride would be spilled
  expand(Indices<kRows>{},
         [&](auto r) TOTO_INLINE_MEMBER { rows[r.value] = src + r.value * args.src_stride; });
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
      for (int i = 0; i < ahead.lines; ++i) prefetch(ahead.next + i * kLineFloats);
      ahead.next += ahead.lines * kLineFloats;
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

template <int kRows>
void gemm_rows(const GemmArgs& args, int panel, int row, Ahead ahead) noexcept {
  PanelSums<kRows> sums;
  tile<kRows>(args, args.src + row * args.src_stride,
              args.panels + std::size_t(panel) * args.depth * kPanel, ahead, sums);
  for (int r = 0; r < kRows; ++r) {
    finish_row(args, panel, sums.total + r * kPanel, sums.rest + r * kPanel,
               args.dst + (row + r) * args.dst_stride);
  }
}

using GemmRows = void (*)(const GemmArgs&, int panel, int row, Ahead) noexcept;
struct RowTiles {
  GemmRows entries[kTileRows];  // entries[n - 1] handles n rows
};
template <int... kRows>
constexpr RowTiles make_row_tiles(Constants<kRows...>) {
  return {{gemm_rows<kRows + 1>...}};
}
inline constexpr RowTiles kRowTiles = make_row_tiles(Indices<kTileRows>{});

void gemm(const GemmArgs& args) noexcept {
  if (args.rows == 0) return;
  const int tiles = (args.rows + kTileRows - 1) / kTileRows;
  // The tiles of a panel share in fetching the next one. With one tile the hardware is faster, with
  // many the weights are no longer what is waited for.
  constexpr int kMaxFetchingTiles = 8;
  const bool fetches = tiles > 1 && tiles <= kMaxFetchingTiles;
  const int lines = fetches ? (kLinesPerTerms + tiles - 1) / tiles : 0;
  const std::size_t panel_size = std::size_t(args.depth) * kPanel;
  for (int panel = args.first_panel; panel < args.last_panel; ++panel) {
    Ahead ahead;
    if (panel + 1 < args.last_panel) ahead = {args.panels + (panel + 1) * panel_size, lines};
    for (int t = 0; t < tiles; ++t) {  // rows split evenly: 16 rows as 8 + 8, not 12 + 4
      const int begin = static_cast<int>(static_cast<long long>(args.rows) * t / tiles);
      const int end = static_cast<int>(static_cast<long long>(args.rows) * (t + 1) / tiles);
      kRowTiles.entries[end - begin - 1](args, panel, begin, ahead);
      ahead.next += panel_size / kLinesPerTerms * ahead.lines;
    }
  }
}
