// The packed matrix product over Vec. Included like kernels.inl, before it.
//
// A tile is kRows rows times all columns of a panel, so the weights are one stream; its running
// sums stay in registers. Loops over rows and vectors are expanded by constant index: given an
// array and a loop, compilers keep the sums on the stack instead.
//
// Many rows pass through a panel in chunks of terms: while all tiles of a block of rows use a
// chunk, it stays in the first-level cache, the next chunk is prefetched, and weights that are not
// float32 are widened once for all tiles. Between chunks the tiles' sums are stored in RowSums.

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

inline constexpr int kVectors = kPanel / Vec::kLanes;
inline constexpr int kUnrolled = TOTO_SMALL_TILES ? 2 : 8;  // terms per loop iteration
inline constexpr int kCacheLine = 64;
inline constexpr int kRowBlock = 96;     // rows whose sums are stored together: 24 KB
inline constexpr int kChunkTerms = 128;  // a multiple of every sum_block

// Weights of columns [kVector * kLanes, (kVector + 1) * kLanes) of one term.
template <int kVector>
TOTO_INLINE Vec load_columns(const float* row) {
  return load(row + kVector * Vec::kLanes);
}
template <int kVector>
TOTO_INLINE Vec load_columns(const F16* row) {
  return load_halves(row + kVector * Vec::kLanes);
}
template <int kVector>
TOTO_INLINE Vec load_columns(const Bf16* row) {
  constexpr int kPairs = kVectors / 2;
  const Bf16* pairs = row + kVector % kPairs * Vec::kLanes * 2;
  return kVector < kPairs ? load_first(pairs) : load_second(pairs);
}

// Totals of one row and panel, and the rounding errors still to be added.
struct RowSums {
  float total[kPanel];
  float rest[kPanel];
};

// Weights to prefetch while computing: `lines` cache lines per kUnrolled terms.
struct Prefetch {
  const std::byte* next = nullptr;
  const std::byte* end = nullptr;
  int lines = 0;

  TOTO_INLINE_MEMBER void fetch() {
    for (int i = 0; i < lines; ++i) prefetch(next + i * kCacheLine);
    next += lines * kCacheLine;
  }
};

// Terms [first_term, first_term + terms) of kRows rows.
struct Part {
  int row = 0;
  int first_term = 0;
  int terms = 0;
};

// One tile of float32, f16 or bf16 weights.
template <int kRows, typename Weight>
TOTO_INLINE void tile(const GemmArgs& args, const Part& part, const Weight* weights,
                      Prefetch& prefetch_next, RowSums* row_sums) {
  using Sums = Indices<kRows * kVectors>;
  const auto total_of = [&](int i) TOTO_INLINE_MEMBER {
    return row_sums[i / kVectors].total + i % kVectors * Vec::kLanes;
  };
  const auto rest_of = [&](int i) TOTO_INLINE_MEMBER {
    return row_sums[i / kVectors].rest + i % kVectors * Vec::kLanes;
  };
  Vec sums[kRows * kVectors];
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER { sums[i.value] = load(rest_of(i.value)); });
  const float* rows[kRows];  // one pointer per row: offsets by the stride would be spilled
  expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
    rows[r.value] = args.src + (part.row + r.value) * args.src_stride + part.first_term;
  });
  const auto advance = [&](int terms) TOTO_INLINE_MEMBER {
    weights += terms * kPanel;
    expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER { rows[r.value] += terms; });
  };
  const auto add_product = [&](auto r, auto v, Vec x, Vec w) TOTO_INLINE_MEMBER {
    Vec& sum = sums[r.value * kVectors + v.value];
    sum = fma(x, w, sum);
  };
  // The fewer of x and w stay in registers; the others are loaded one by one.
  const auto multiply_add = [&](int k) TOTO_INLINE_MEMBER {
    const auto w = [&](auto v) TOTO_INLINE_MEMBER {
      return in_register(load_columns<v.value>(weights + k * kPanel));
    };
    const auto x = [&](auto r)
                       TOTO_INLINE_MEMBER { return in_register(broadcast(rows[r.value][k])); };
    if constexpr (kRows < kVectors) {
      Vec xs[kRows];
      expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER { xs[r.value] = x(r); });
      expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
        const Vec one = w(v);
        expand(Indices<kRows>{},
               [&](auto r) TOTO_INLINE_MEMBER { add_product(r, v, xs[r.value], one); });
      });
    } else {
      Vec ws[kVectors];
      expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER { ws[v.value] = w(v); });
      expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
        const Vec one = x(r);
        expand(Indices<kVectors>{},
               [&](auto v) TOTO_INLINE_MEMBER { add_product(r, v, one, ws[v.value]); });
      });
    }
  };
  const int block = sum_block(args.depth);
  for (int left = part.terms; left > 0; left -= block) {
    int terms = left < block ? left : block;
    for (; terms >= kUnrolled; terms -= kUnrolled) {
      expand(Indices<kUnrolled>{}, [&](auto k) TOTO_INLINE_MEMBER { multiply_add(k.value); });
      advance(kUnrolled);
      prefetch_next.fetch();
    }
    for (; terms > 0; --terms) {
      multiply_add(0);
      advance(1);
    }
    expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
      Vec& sum = sums[i.value];
      float* total = total_of(i.value);
      const Vec before = load(total);
      const Vec after = add(before, sum);
      sum = sub(sum, sub(after, before));  // the rounding error starts the next block
      store(total, after);
    });
  }
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER { store(rest_of(i.value), sums[i.value]); });
}

// One tile of one group of int8 weights, widened to int16 or not: exact integer sums.
template <int kRows, typename Weight>
TOTO_INLINE void group_tile(const GemmArgs& args, const Part& part, const float* scales,
                            const Weight* weights, Prefetch& prefetch_next, RowSums* row_sums) {
  using Sums = Indices<kRows * kVectors>;
  const std::int16_t* rows[kRows];
  expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
    rows[r.value] =
        args.quantised.values + (part.row + r.value) * args.quantised.stride + part.first_term;
  });
  Ints sums[kRows * kVectors];
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER { sums[i.value] = zero_ints(); });
  const auto multiply_add = [&](int pair) TOTO_INLINE_MEMBER {
    Ints w[kVectors];
    expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
      w[v.value] = in_register(load_pairs(weights + (pair * kPanel + v.value * Vec::kLanes) * 2));
    });
    expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER {
      const Ints x = broadcast_pair(rows[r.value] + pair * 2);
      expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
        Ints& sum = sums[r.value * kVectors + v.value];
        sum = in_register(multiply_add_pairs(x, w[v.value], sum));
      });
    });
  };
  const auto advance = [&](int pairs) TOTO_INLINE_MEMBER {
    weights += pairs * kPanel * 2;
    expand(Indices<kRows>{}, [&](auto r) TOTO_INLINE_MEMBER { rows[r.value] += pairs * 2; });
  };
  int pairs = (part.terms + 1) / 2;
  constexpr int kPairs = kUnrolled / 2;
  for (; pairs >= kPairs; pairs -= kPairs) {
    expand(Indices<kPairs>{}, [&](auto p) TOTO_INLINE_MEMBER { multiply_add(p.value); });
    advance(kPairs);
    prefetch_next.fetch();
  }
  for (; pairs > 0; --pairs) {
    multiply_add(0);
    advance(1);
  }
  const float* row_scales = args.quantised.scales + part.row * args.quantised.scale_stride +
                            part.first_term / kScaleGroup;
  expand(Sums{}, [&](auto i) TOTO_INLINE_MEMBER {
    constexpr int kRow = i.value / kVectors, kColumn = i.value % kVectors * Vec::kLanes;
    float* total = row_sums[kRow].total + kColumn;
    const Vec scaled =
        mul(to_floats(sums[i.value]), broadcast(row_scales[kRow * args.quantised.scale_stride]));
    store(total, fma(scaled, load(scales + kColumn), load(total)));
  });
}

// A number as an unevaluated sum: `rest` collects the rounding errors of additions to `total`.
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

// Adds the bias and applies the epilogue to the sums of one row and panel.
TOTO_INLINE void finish_row(const GemmArgs& args, int panel, const RowSums& sums, float* dst_row) {
  constexpr int kHalf = kPanel / 2;
  const float* bias = args.bias + std::size_t(panel) * kPanel;
  const auto biased = [&](int c) TOTO_INLINE_MEMBER {
    return plus({load(sums.total + c), load(sums.rest + c)}, load(bias + c));
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
    store(dst + c, args.epilogue == Epilogue::silu ? silu(rounded(y)) : rounded(y));
  }
}

void quantise(const float* src, int depth, std::int16_t* values, float* scales) noexcept {
  for (int k0 = 0; k0 < depth; k0 += kScaleGroup) {
    const int terms = depth - k0 < kScaleGroup ? depth - k0 : kScaleGroup;
    alignas(64) float group[kScaleGroup];  // padded with zeros, which change no result
    for (int k = 0; k < kScaleGroup; ++k) group[k] = k < terms ? src[k0 + k] : 0.0f;
    Vec largest_of = zero(), poison_of = zero();  // poison keeps NaN, which a maximum drops
    for (int k = 0; k < kScaleGroup; k += Vec::kLanes) {
      largest_of = max(absolute(load(group + k)), largest_of);
      poison_of = fma(load(group + k), zero(), poison_of);
    }
    float lanes[Vec::kLanes], poisons[Vec::kLanes], largest = 0, poison = 0;
    store(lanes, largest_of);
    store(poisons, poison_of);
    for (const float lane : lanes) largest = lane > largest ? lane : largest;
    for (const float lane : poisons) poison += lane;
    const Vec factor = broadcast(largest > kSmallestGroup ? kLargestInt16 / largest : 0.0f);
    std::int16_t rounded_group[kScaleGroup];
    for (int k = 0; k < kScaleGroup; k += Vec::kLanes) {
      const Vec magic = broadcast(kRoundMagic);
      store_difference(rounded_group + k, fma(load(group + k), factor, magic), magic);
    }
    const int even = (terms + 1) / 2 * 2;
    for (int k = 0; k < even; ++k) values[k0 + k] = rounded_group[k];
    *scales++ = largest / kLargestInt16 + poison;
  }
}

// The weights of a chunk as the tiles read them.
template <typename Weight>
struct Chunk {
  const float* scales;  // of int8 weights
  const Weight* weights;
};
TOTO_INLINE Chunk<float> chunk_at(const float* panel) { return {nullptr, panel}; }
TOTO_INLINE Chunk<F16> chunk_at(const F16* panel) { return {nullptr, panel}; }
TOTO_INLINE Chunk<Bf16> chunk_at(const Bf16* panel) { return {nullptr, panel}; }
TOTO_INLINE Chunk<std::int8_t> chunk_at(const std::int8_t* panel) {
  return {reinterpret_cast<const float*>(panel), panel + kPanel * sizeof(float)};
}

template <int kRows, typename Weight>
TOTO_INLINE void multiply(const GemmArgs& args, const Part& part, const Chunk<Weight>& chunk,
                          Prefetch& prefetch_next, RowSums* sums) {
  tile<kRows>(args, part, chunk.weights, prefetch_next, sums);
}
template <int kRows>
TOTO_INLINE void multiply(const GemmArgs& args, const Part& part, const Chunk<std::int8_t>& chunk,
                          Prefetch& prefetch_next, RowSums* sums) {
  group_tile<kRows>(args, part, chunk.scales, chunk.weights, prefetch_next, sums);
}
template <int kRows>
TOTO_INLINE void multiply(const GemmArgs& args, const Part& part, const Chunk<std::int16_t>& chunk,
                          Prefetch& prefetch_next, RowSums* sums) {
  group_tile<kRows>(args, part, chunk.scales, chunk.weights, prefetch_next, sums);
}

// `count` tiles of kRows rows each, from part.row on.
template <int kRows, typename Weight>
void multiply_tiles(const GemmArgs& args, Part part, int count, const Chunk<Weight>& chunk,
                    Prefetch& prefetch_next, RowSums* sums) noexcept {
  for (; count > 0; --count) {
    multiply<kRows>(args, part, chunk, prefetch_next, sums);
    if (prefetch_next.next >= prefetch_next.end) prefetch_next.lines = 0;
    part.row += kRows;
    sums += kRows;
  }
}

// Tiles by their height: entries[n - 1] handles n rows.
template <typename Weight>
using MultiplyTiles = void (*)(const GemmArgs&, Part, int count, const Chunk<Weight>&, Prefetch&,
                               RowSums*) noexcept;
template <typename Weight, int kHighest>
struct TileTable {
  MultiplyTiles<Weight> entries[kHighest];
};
template <typename Weight, int... kRows>
constexpr TileTable<Weight, sizeof...(kRows)> make_tile_table(Constants<kRows...>) {
  return {{multiply_tiles<kRows + 1, Weight>...}};
}

// Parameters of the product for each stored type of weights.
template <typename Weight>
struct Scheme;
template <>
struct Scheme<float> {
  using Wide = float;
  static constexpr DType kType = DType::f32;
  static constexpr int kTilesToWiden = 1;  // widening float is free
  static constexpr int kRows = kTileRows;
};
template <>
struct Scheme<F16> {
  using Wide = float;
  static constexpr DType kType = DType::f16;
  static constexpr int kTilesToWiden = 4;  // a conversion costs more than bf16's shift
  static constexpr int kRows = kTileRows;
};
template <>
struct Scheme<Bf16> {
  using Wide = float;
  static constexpr DType kType = DType::bf16;
  static constexpr int kTilesToWiden = 9;  // from this many tiles on, widening once is faster
  static constexpr int kRows = kTileRows;
};
template <>
struct Scheme<std::int8_t> {
  using Wide = std::int16_t;
  static constexpr DType kType = DType::int8;
  static constexpr int kTilesToWiden = 2;
  static constexpr int kRows = kIntTileRows;
};

// Converts a chunk to the type the tiles multiply with; `dst` has kChunkTerms * kPanel elements.
TOTO_INLINE const float* widen(const float* weights, int, float*) { return weights; }
template <typename Half>
TOTO_INLINE const float* widen(const Half* weights, int terms, float* dst) {
  for (int k = 0; k < terms; ++k) {
    expand(Indices<kVectors>{}, [&](auto v) TOTO_INLINE_MEMBER {
      store(dst + k * kPanel + v.value * Vec::kLanes, load_columns<v.value>(weights + k * kPanel));
    });
  }
  return dst;
}
TOTO_INLINE const std::int16_t* widen(const std::int8_t* weights, int terms, std::int16_t* dst) {
  const int even = (terms + 1) / 2 * 2;
  for (int i = 0; i < even * kPanel; i += 2 * Vec::kLanes) {
    store_pairs(dst + i, load_pairs(weights + i));
  }
  return dst;
}

// Rows [first, first + rows) times one panel.
template <typename Weight>
TOTO_INLINE void gemm_block(const GemmArgs& args, int panel, int first, int rows,
                            const std::byte* next_panel) {
  using Scheme = Scheme<Weight>;
  using Wide = typename Scheme::Wide;
  static constexpr auto kDirect = make_tile_table<Weight>(Indices<Scheme::kRows>{});
  static constexpr auto kWidened = make_tile_table<Wide>(Indices<Scheme::kRows>{});
  alignas(64) RowSums sums[kRowBlock];
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < kPanel; c += Vec::kLanes) {
      store(sums[row].total + c, zero());
      store(sums[row].rest + c, zero());
    }
  }
  alignas(64) Wide wide[kChunkTerms * kPanel];
  // Rows split evenly: 16 rows as 8 + 8, not 12 + 4.
  const int tiles = (rows + Scheme::kRows - 1) / Scheme::kRows;
  const int height = (rows + tiles - 1) / tiles;
  const int higher =
      rows - (height - 1) * tiles;  // tiles of `height`; the others have one row less
  const std::byte* panel_begin = args.panels + panel * panel_bytes(Scheme::kType, args.depth);
  const std::byte* at = panel_begin;
  for (int term = 0; term < args.depth;) {
    int terms = args.depth - term;
    if (terms > kChunkTerms && (tiles > 1 || Scheme::kType == DType::int8)) {
      terms = kChunkTerms;
    }
    const std::size_t bytes = panel_bytes(Scheme::kType, terms);
    const auto chunk = chunk_at(reinterpret_cast<const Weight*>(at));
    const Part part = {.row = first, .first_term = term, .terms = terms};
    Prefetch prefetch_next;
    if (tiles == 1) {  // a single stream: the hardware prefetcher is best
      kDirect.entries[rows - 1](args, part, 1, chunk, prefetch_next, sums);
    } else {
      const std::byte* next = term + terms < args.depth ? at + bytes : next_panel;
      const int steps = tiles * (terms / kUnrolled);
      if (next != nullptr && steps > 0) {
        prefetch_next.next = next;
        prefetch_next.end = next + bytes;
        prefetch_next.lines = (static_cast<int>(bytes / kCacheLine) + steps - 1) / steps;
      }
      const auto multiply_all = [&](const auto& table, const auto& weights) TOTO_INLINE_MEMBER {
        table.entries[height - 1](args, part, higher, weights, prefetch_next, sums);
        if (higher == tiles) return;
        Part rest = part;
        rest.row += higher * height;
        table.entries[height - 2](args, rest, tiles - higher, weights, prefetch_next,
                                  sums + higher * height);
      };
      if (tiles < Scheme::kTilesToWiden) {
        multiply_all(kDirect, chunk);
      } else {
        multiply_all(kWidened, Chunk<Wide>{chunk.scales, widen(chunk.weights, terms, wide)});
      }
    }
    at += bytes;
    term += terms;
  }
  for (int row = 0; row < rows; ++row) {
    finish_row(args, panel, sums[row], args.dst + (first + row) * args.dst_stride);
  }
}

template <typename Weight>
void gemm(const GemmArgs& args) noexcept {
  const std::size_t bytes = panel_bytes(Scheme<Weight>::kType, args.depth);
  for (int panel = args.first_panel; panel < args.last_panel; ++panel) {
    for (int first = 0; first < args.rows; first += kRowBlock) {
      const int rows = args.rows - first < kRowBlock ? args.rows - first : kRowBlock;
      // Further blocks of rows read the same panel again, from the second-level cache.
      const int next = first + rows < args.rows ? panel : panel + 1;
      const std::byte* next_panel = next < args.last_panel ? args.panels + next * bytes : nullptr;
      gemm_block<Weight>(args, panel, first, rows, next_panel);
    }
  }
}
