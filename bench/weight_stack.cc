#include "weight_stack.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace toto::bench {
namespace {

// SplitMix64, Steele, Lea and Flood (OOPSLA 2014): enough to tell two matrices apart.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

float uniform(std::uint64_t index) {  // in [-1, 1)
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  return static_cast<float>(mix((index + 1) * kGolden) >> 40) * 0x1p-23f - 1.0f;
}

}  // namespace

const std::vector<MatrixShape>& stack_shapes() {
  static const std::vector<MatrixShape> shapes = [] {
    constexpr int kBlocks = 12;
    std::vector<MatrixShape> all;
    for (int block = 0; block < kBlocks; ++block) {
      all.insert(all.end(), {{768, 2304}, {768, 768}, {768, 6144}, {3072, 768}});
    }
    all.push_back({768, 6144});
    return all;
  }();
  return shapes;
}

double stack_weights() {
  double weights = 0;
  for (const MatrixShape& shape : stack_shapes()) weights += double(shape.in) * shape.out;
  return weights;
}

void fill_weight_row(int matrix, int row, float* dst) {
  const int in = stack_shapes()[matrix].in;
  const float gain = 1 / std::sqrt(static_cast<float>(in) / 3);  // uniform values have variance 1/3
  const std::uint64_t first =
      (static_cast<std::uint64_t>(matrix) << 40) + (static_cast<std::uint64_t>(row) << 16);
  for (int k = 0; k < in; ++k) dst[k] = gain * uniform(first + k);
}

Activations::Activations(int rows) {
  int in = 0, out = 0;
  for (const MatrixShape& shape : stack_shapes()) {
    in = std::max(in, shape.in);
    out = std::max(out, shape.out);
  }
  src = Buffer<float>(rows * row_stride(in));
  dst = Buffer<float>(rows * row_stride(out));
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = uniform(~i);
}

const std::vector<PackedLinear>& packed_stack(DType type) {
  static std::map<DType, std::vector<PackedLinear>> stacks;
  std::vector<PackedLinear>& stack = stacks[type];
  if (!stack.empty()) return stack;
  std::vector<float> row;
  for (int matrix = 0; const MatrixShape& shape : stack_shapes()) {
    PackedLinear linear = declare_packed(shape.in, shape.out, type);
    linear.panels.allocate();
    linear.bias.allocate();
    row.resize(shape.in);
    for (int n = 0; n < shape.out; ++n) {
      fill_weight_row(matrix, n, row.data());
      pack_column(linear, n, row.data(), 0.0f);
    }
    stack.push_back(std::move(linear));
    ++matrix;
  }
  return stack;
}

}  // namespace toto::bench
