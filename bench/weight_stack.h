// Every weight matrix of the base-size network, 472 MB in float32: too large for any cache, so that
// reading it once costs as much as in a forward pass.
#pragma once

#include <vector>

#include "base/memory.h"
#include "model/layers.h"

namespace toto::bench {

struct MatrixShape {
  int in;
  int out;
};

// Twelve blocks (queries, keys and values; attention's output; gates and ups; down), then the
// folded head: unembedding and projections of 64 steps in one.
const std::vector<MatrixShape>& stack_shapes();
inline constexpr int kMatricesPerBlock = 4;  // the first block holds each shape once

double stack_weights();  // their number

// Row `row` of matrix `matrix` as x sees it: `in` reproducible values of unit gain.
void fill_weight_row(int matrix, int row, float* dst);

// `rows` rows of inputs wide enough for every matrix, and room for every output. Rows are
// row_stride() of the matrix in use apart, for every library, as they are in a forward pass.
struct Activations {
  explicit Activations(int rows);
  Buffer<float> src;
  Buffer<float> dst;
};

// The whole stack, packed; made on the first call for a type and kept.
const std::vector<PackedLinear>& packed_stack(DType type);

}  // namespace toto::bench
