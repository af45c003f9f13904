// Every kernel on every instruction set of this CPU has the same bits as the plain one.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/memory.h"
#include "kernels/tables.h"
#include "model/layers.h"

namespace toto {
namespace {

// Every table of vector kernels that this CPU can run; some CPUs have two for one instruction set.
std::vector<const Kernels*> vector_kernels() {
  std::vector<const Kernels*> tables;
  for (const Isa isa : all_isas()) {
    if (isa != Isa::reference && isa_available(isa)) tables.push_back(&kernels_for(isa));
  }
#if defined(__x86_64__)
  if (!tables.empty() && tables.back() == &kernels::kAvx512VnniKernels) {
    tables.push_back(&kernels::kAvx512Kernels);
  }
#endif
  return tables;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  float normal(float spread = 1) { return spread * std::normal_distribution<float>()(engine_); }
  std::vector<float> normals(std::size_t count, float spread = 1) {
    std::vector<float> values(count);
    for (float& x : values) x = normal(spread);
    return values;
  }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

 private:
  std::mt19937 engine_;
};

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]))
        << what << " differs at " << i << ": " << a[i] << " and " << b[i];
  }
}

struct GemmCase {
  int rows, depth, panels;
  Epilogue epilogue;
  DType type = DType::f32;
};

struct GemmData {
  GemmData(const GemmCase& c, unsigned seed) : shape(c) {
    Random random(seed);
    src = random.normals(std::size_t(c.rows) * c.depth);
    weights = random.normals(std::size_t(c.panels) * kPanel * c.depth, 0.1f);
    linear = declare_packed(c.depth, c.panels * kPanel, c.type);
    linear.panels.allocate();
    linear.bias.allocate();
    for (int column = 0; column < c.panels * kPanel; ++column) {
      pack_column(linear, column, weights.data() + std::size_t(column) * c.depth, random.normal());
    }
    dst = random.normals(std::size_t(c.rows) * c.panels * kPanel);
  }
  // The product in float64.
  double exact(int row, int column) const {
    double sum = linear.bias.data()[column];
    for (int k = 0; k < shape.depth; ++k) {
      sum += static_cast<double>(src[std::size_t(row) * shape.depth + k]) *
             weights[std::size_t(column) * shape.depth + k];
    }
    return sum;
  }
  std::vector<float> run(const Kernels& kernels, int first_row, int rows) const {
    std::vector<float> result = dst;
    GemmArgs args;
    args.src = src.data() + std::size_t(first_row) * shape.depth;
    args.src_stride = shape.depth;
    args.panels = linear.panels.data();
    args.bias = linear.bias.data();
    args.dst = result.data() + std::size_t(first_row) * shape.panels * kPanel;
    args.dst_stride = std::size_t(shape.panels) * kPanel;
    args.rows = rows;
    args.depth = shape.depth;
    args.last_panel = shape.panels;
    args.epilogue = shape.epilogue;
    const std::size_t groups = (shape.depth + kScaleGroup - 1) / kScaleGroup;
    std::vector<std::int16_t> values(std::size_t(rows) * (shape.depth + 1));
    std::vector<float> scales(rows * groups);
    args.quantised = {values.data(), scales.data(), std::size_t(shape.depth) + 1, groups};
    if (shape.type == DType::int8) {
      for (int row = 0; row < rows; ++row) {
        kernels.quantise(args.src + row * args.src_stride, shape.depth,
                         values.data() + row * args.quantised.stride, scales.data() + row * groups);
      }
      kernels.gemm_int8(args);
    } else {
      (shape.type == DType::f16    ? kernels.gemm_f16
       : shape.type == DType::bf16 ? kernels.gemm_bf16
                                   : kernels.gemm)(args);
    }
    return result;
  }
  GemmCase shape;
  std::vector<float> src, weights, dst;  // weights are [column][depth]
  PackedLinear linear;
};

constexpr DType kWeightTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8};

TEST(Kernels, GemmAgreesOnEveryIsa) {
  const Kernels& plain = kernels_for(Isa::reference);
  unsigned seed = 0;
  for (const DType type : kWeightTypes) {
    SCOPED_TRACE(name_of(type));
    for (const Epilogue epilogue :
         {Epilogue::store, Epilogue::add, Epilogue::silu, Epilogue::gate}) {
      for (const int rows : {1, 2, 3, 5, 6, 7, 11, 12, 13, 25, 97, 193}) {  // blocks hold 96
        for (const int depth : {1, 7, 64, 65, 128, 129, 200, 600}) {        // chunks hold 128
          if (rows > 25 && depth > 129) continue;
          const GemmData data({rows, depth, 2, epilogue, type}, ++seed);
          const std::vector<float> expected = data.run(plain, 0, rows);
          for (const Kernels* kernels : vector_kernels()) {
            expect_same_bits(data.run(*kernels, 0, rows), expected, kernels->name);
          }
        }
      }
    }
  }
}

TEST(Kernels, QuantisedRowsAgreeAndAreClose) {
  Random random(11);
  for (const int depth : {1, 5, 127, 128, 129, 300}) {
    std::vector<float> src = random.normals(depth, 3);
    if (depth == 300) {  // a group of zeros and a group of tiny values
      std::fill(src.begin(), src.begin() + 128, 0.0f);
      std::fill(src.begin() + 128, src.begin() + 256, 1e-38f);
    }
    const int groups = (depth + kScaleGroup - 1) / kScaleGroup;
    std::vector<std::int16_t> expected(depth + 1);
    std::vector<float> expected_scales(groups);
    kernels_for(Isa::reference)
        .quantise(src.data(), depth, expected.data(), expected_scales.data());
    for (int k = 0; k < depth; ++k) {
      const float scale = expected_scales[k / kScaleGroup];
      EXPECT_NEAR(expected[k] * scale, src[k], 0.501 * scale + 1e-30) << k;
    }
    for (const Kernels* kernels : vector_kernels()) {
      std::vector<std::int16_t> values(depth + 1);
      std::vector<float> scales(groups);
      kernels->quantise(src.data(), depth, values.data(), scales.data());
      EXPECT_EQ(values, expected);
      expect_same_bits(scales, expected_scales, "scales");
    }
  }
}

// A maximum ignores NaN; a quantised row must not.
TEST(Kernels, AQuantisedRowKeepsNan) {
  for (const float wrong : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<float> src(200, 1.0f);
    src[150] = wrong;
    std::vector<std::int16_t> values(200);
    std::vector<const Kernels*> all = vector_kernels();
    all.push_back(&kernels_for(Isa::reference));
    for (const Kernels* kernels : all) {
      std::vector<float> scales(2);
      kernels->quantise(src.data(), 200, values.data(), scales.data());
      EXPECT_GT(scales[0], 0) << kernels->name;
      EXPECT_TRUE(std::isnan(scales[1])) << kernels->name;
    }
  }
}

TEST(Kernels, GemmRowsDoNotDependOnTheirNeighbours) {
  for (const DType type : kWeightTypes) {
    const GemmData data({64, 130, 3, Epilogue::gate, type}, 99);
    for (const Isa isa : {Isa::reference, best_isa()}) {
      const Kernels& kernels = kernels_for(isa);
      const std::vector<float> together = data.run(kernels, 0, 64);
      const std::size_t stride = 3 * kPanel;
      for (const int row : {0, 1, 17, 63}) {
        const std::vector<float> alone = data.run(kernels, row, 1);
        expect_same_bits({alone.begin() + row * stride, alone.begin() + (row + 1) * stride},
                         {together.begin() + row * stride, together.begin() + (row + 1) * stride},
                         "row");
      }
    }
  }
}

// Sums stay close to float64, within the bound that keeps float32 below the reference's own error.
// Weights in fewer bits lose no more than their rounding.
TEST(Kernels, GemmIsAccurate) {
  const struct {
    DType type;
    double bound;
  } cases[] = {
      {DType::f32, 1.5e-7}, {DType::f16, 3e-4}, {DType::bf16, 2.5e-3}, {DType::int8, 9e-3}};
  for (const auto& [type, bound] : cases) {
    const GemmData data({4, 3072, 1, Epilogue::store, type}, 7);
    const std::vector<float> y = data.run(kernels_for(best_isa()), 0, 4);
    double error = 0, size = 0;
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < kPanel; ++c) {
        error += std::fabs(y[r * kPanel + c] - data.exact(r, c));
        size += std::fabs(data.exact(r, c));
      }
    }
    EXPECT_LT(error / size, bound) << name_of(type);
    EXPECT_GT(error / size, bound / 10) << name_of(type);
  }
}

// Weights with a denormal scale keep their sign.
TEST(Kernels, TheSmallestWeightsKeepTheirSignAsInt8) {
  const int depth = kScaleGroup;
  PackedLinear linear = declare_packed(depth, kPanel, DType::int8);
  linear.panels.allocate();
  linear.bias.allocate();
  const std::vector<float> row(depth, 190 * std::numeric_limits<float>::denorm_min());
  pack_column(linear, 0, row.data(), 0);
  const auto* scales = reinterpret_cast<const float*>(linear.panels.data());
  const auto* weights = reinterpret_cast<const std::int8_t*>(scales + kPanel);
  EXPECT_GT(scales[0], 0);
  for (int k = 0; k < depth; ++k) EXPECT_EQ(weights[k / 2 * kPanel * 2 + k % 2], 127) << k;
}

TEST(Kernels, NormAndRotationAgree) {
  Random random(3);
  const Kernels& plain = kernels_for(Isa::reference);
  for (const int size : {2, 8, 16, 24, 40, 64, 768}) {
    const std::size_t padded = round_up(size, kPanel);
    std::vector<float> x = random.normals(padded), w = random.normals(padded);
    std::fill(x.begin() + size, x.end(), 0.0f);
    std::fill(w.begin() + size, w.end(), 0.0f);
    const std::vector<float> a = random.normals(size), b = random.normals(size);
    std::vector<float> rotated(size);
    plain.rotate(x.data(), a.data(), b.data(), rotated.data(), size);
    for (const Kernels* kernels : vector_kernels()) {
      std::vector<float> in_place(x.begin(), x.begin() + size);
      kernels->rotate(in_place.data(), a.data(), b.data(), in_place.data(), size);
      expect_same_bits(in_place, rotated, "rotate");
    }
    double squares = 0;
    for (const float v : x) squares += static_cast<double>(v) * v;
    for (const double epsilon : {1e-8, 5e-4, 1.0}) {
      const double root = std::sqrt(squares / size + epsilon);
      for (const float* weight :
           {static_cast<const float*>(w.data()), static_cast<const float*>(nullptr)}) {
        std::vector<float> expected(padded);
        plain.rms_norm(x.data(), weight, epsilon, expected.data(), size);
        for (int i = 0; i < size; ++i) {
          const double scaled = x[i] / root * (weight != nullptr ? w[i] : 1);
          EXPECT_NEAR(expected[i], scaled, 1e-6 * std::fabs(scaled) + 1e-12);
        }
        for (const Kernels* kernels : vector_kernels()) {
          std::vector<float> result(padded);
          kernels->rms_norm(x.data(), weight, epsilon, result.data(), size);
          expect_same_bits(result, expected, "rms_norm");
        }
      }
    }
  }
}

// A head's cache with `count` positions, in the layout attention reads.
struct HeadCache {
  HeadCache(Random& random, int positions, int head_dim)
      : stride(static_cast<int>(round_up(head_dim, kPartialSums))), count(positions) {
    keys = random.normals(round_up(std::max(positions, 1), kKeyPanel) * head_dim);
    values = random.normals(std::size_t(std::max(positions, 1)) * stride);
  }
  KeyValues view() const { return {keys.data(), values.data(), count}; }
  int stride, count;
  std::vector<float> keys, values;
};

std::vector<float> attend(const Kernels& kernels, const std::vector<float>& query,
                          const KeyValues& prefix, const KeyValues& tail, int head_dim) {
  std::vector<float> scores(round_up(prefix.count + tail.count, kKeyPanel) + 3 * kKeyPanel),
      dst(head_dim);
  AttendArgs args;
  args.query = query.data();
  args.prefix = prefix;
  args.tail = tail;
  args.head_dim = head_dim;
  args.value_stride = static_cast<int>(round_up(head_dim, kPartialSums));
  args.dst = dst.data();
  args.scores = scores.data();
  kernels.attend(args);
  return dst;
}

TEST(Kernels, AttentionAgreesOnEveryIsa) {
  Random random(5);
  for (const int head_dim : {2, 8, 16, 20, 64, 80}) {
    for (const auto& [before, after] :
         std::vector<std::pair<int, int>>{{0, 1}, {0, 16}, {5, 1}, {64, 3}, {17, 130}}) {
      const HeadCache prefix(random, before, head_dim), tail(random, after, head_dim);
      const std::vector<float> query = random.normals(head_dim);
      const std::vector<float> expected =
          attend(kernels_for(Isa::reference), query, prefix.view(), tail.view(), head_dim);
      for (const Kernels* kernels : vector_kernels()) {
        expect_same_bits(attend(*kernels, query, prefix.view(), tail.view(), head_dim), expected,
                         "attend");
      }
    }
  }
}

// The end of the prefix affects only the memory layout, not the result.
TEST(Kernels, AttentionDoesNotDependOnTheSplit) {
  Random random(6);
  constexpr int kHeadDim = 16, kCount = 100;
  const HeadCache whole(random, kCount, kHeadDim);
  const std::vector<float> query = random.normals(kHeadDim);
  const KeyValues nothing{whole.keys.data(), whole.values.data(), 0};
  const std::vector<float> expected =
      attend(kernels_for(best_isa()), query, nothing, whole.view(), kHeadDim);
  for (const int split : {16, 48, 96}) {  // panels can only be cut at their borders in this test
    const KeyValues prefix{whole.keys.data(), whole.values.data(), split};
    const KeyValues tail{whole.keys.data() + std::size_t(split) * kHeadDim,
                         whole.values.data() + std::size_t(split) * whole.stride, kCount - split};
    expect_same_bits(attend(kernels_for(best_isa()), query, prefix, tail, kHeadDim), expected,
                     "split");
  }
}

TEST(Kernels, AttentionIsASoftmax) {
  Random random(8);
  constexpr int kHeadDim = 12, kCount = 37;
  const HeadCache cache(random, kCount, kHeadDim);
  const std::vector<float> query = random.normals(kHeadDim, 3);
  std::vector<double> weights(kCount);
  double total = 0;
  for (int i = 0; i < kCount; ++i) {
    double score = 0;
    for (int d = 0; d < kHeadDim; ++d) {
      score += static_cast<double>(query[d]) *
               cache.keys[std::size_t(i / kKeyPanel) * kHeadDim * kKeyPanel + d * kKeyPanel +
                          i % kKeyPanel];
    }
    total += weights[i] = std::exp(score);
  }
  const std::vector<float> result =
      attend(kernels_for(best_isa()), query, {cache.keys.data(), cache.values.data(), 0},
             cache.view(), kHeadDim);
  for (int d = 0; d < kHeadDim; ++d) {
    double expected = 0;
    for (int i = 0; i < kCount; ++i)
      expected += weights[i] / total * cache.values[std::size_t(i) * cache.stride + d];
    EXPECT_NEAR(result[d], expected, 2e-6);
  }
}

TEST(Kernels, SpacewiseAttentionAgrees) {
  Random random(9);
  for (const int head_dim : {2, 8, 20, 64}) {
    constexpr int kRows = 70;
    const std::size_t stride = round_up(3 * head_dim, kPanel);
    const std::vector<float> qkv = random.normals(kRows * stride + kPartialSums);
    for (const int count : {1, 2, 3, 17, 66}) {
      std::vector<int> rows(count);
      for (int& row : rows) row = random.integer(0, kRows - 1);
      const auto run = [&](const Kernels& kernels) {
        std::vector<float> scores(round_up(count, kPartialSums)), dst(head_dim);
        AttendRowsArgs args;
        args.query = qkv.data() + rows[0] * stride;
        args.keys = qkv.data() + head_dim;
        args.values = qkv.data() + 2 * head_dim;
        args.stride = stride;
        args.rows = rows.data();
        args.count = count;
        args.head_dim = head_dim;
        args.scale = 0.25f;
        args.dst = dst.data();
        args.scores = scores.data();
        kernels.attend_rows(args);
        return dst;
      };
      const std::vector<float> expected = run(kernels_for(Isa::reference));
      for (const Kernels* kernels : vector_kernels())
        expect_same_bits(run(*kernels), expected, "attend_rows");
    }
  }
}

TEST(Kernels, StudentSumsAgreeOnEveryIsa) {
  Random random(11);
  std::vector<StudentBlock> blocks(21);  // not a multiple of the blocks summed in float32
  for (StudentBlock& block : blocks) {
    for (int lane = 0; lane < kStudentBlock; ++lane) {
      block.loc_high[lane] = random.normal(3);
      block.loc_low[lane] = random.normal(1e-8f);
      block.inv_scale[lane] = std::exp(random.normal(3));
      block.weight[lane] = lane == 5 ? 0.0f : std::fabs(random.normal());
      block.inv_sqrt_df[lane] = std::exp(random.normal(2));
      block.half_df[lane] = std::exp(random.normal(3));
      block.peak[lane] = random.normal();
      block.moment[lane] = random.normal();
      for (auto& row : block.near) row[lane] = random.normal();
      for (auto& row : block.far) row[lane] = random.normal();
    }
  }
  const auto bits_of = [](const StudentSums& sums) {
    return std::bit_cast<std::array<std::uint64_t, 4>>(sums);
  };
  const Kernels& plain = kernels_for(Isa::reference);
  for (const Kernels* table : vector_kernels()) {
    for (const int count : {0, 1, 8, 21}) {
      for (const double x : {-1e30, -4.0, -0.1, 0.0, 1e-12, 0.7, 5.0, 1e25}) {
        EXPECT_EQ(bits_of(table->student_sums(blocks.data(), count, x)),
                  bits_of(plain.student_sums(blocks.data(), count, x)))
            << table->name << ": " << count << " blocks at " << x;
      }
    }
  }
}

TEST(Kernels, FoldingAgrees) {
  Random random(10);
  for (const int size : {1, 4, 7, 768}) {
    const std::vector<float> src = random.normals(size);
    std::vector<double> expected(size, 0.125);
    for (const double weight : {0.3, -1e-9, 1e9}) {
      kernels_for(Isa::reference).accumulate(expected.data(), weight, src.data(), size);
    }
    for (const Kernels* kernels : vector_kernels()) {
      std::vector<double> acc(size, 0.125);
      for (const double weight : {0.3, -1e-9, 1e9})
        kernels->accumulate(acc.data(), weight, src.data(), size);
      EXPECT_EQ(acc, expected);
    }
  }
}

// Extreme values must not make the instruction sets disagree or crash.
TEST(Kernels, ExtremeValuesAgree) {
  GemmData data({3, 70, 1, Epilogue::gate}, 4);
  data.src[0] = 1e38f;
  data.src[70] = -1e38f;
  data.src[71] = 1e-40f;
  data.weights[5] = 1e38f;
  const std::vector<float> expected = data.run(kernels_for(Isa::reference), 0, 3);
  for (const Kernels* kernels : vector_kernels()) {
    const std::vector<float> result = data.run(*kernels, 0, 3);
    for (std::size_t i = 0; i < result.size(); ++i) {
      EXPECT_TRUE(result[i] == expected[i] || (std::isnan(result[i]) && std::isnan(expected[i])))
          << i;
    }
  }
}

TEST(Kernels, RefusesAnUnavailableIsa) {
  for (const Isa isa : all_isas()) {
    if (isa_available(isa)) {
      EXPECT_EQ(kernels_for(isa).isa, isa);
    } else {
      EXPECT_THROW(kernels_for(isa), Error);
    }
  }
  EXPECT_EQ(kernels_for(Isa::automatic).isa, best_isa());
}

}  // namespace
}  // namespace toto
