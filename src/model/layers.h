// Linear layers with packed weights, as the GEMM kernels read them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/memory.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "model/weight_array.h"

namespace toto {

class Checkpoint;

// y = x W^T + b with W packed in panels (kernels.h), zero-padded to whole panels.
struct PackedLinear {
  WeightArray<std::byte> panels;
  WeightArray<float> bias;
  DType type = DType::f32;
  int in = 0;
  int out = 0;
  int num_panels = 0;

  int padded_out() const { return num_panels * kPanel; }  // columns, padding included
};

// Floats from one row of activations to the next. Rows a multiple of 4 KiB apart would compete for
// the same lines of the first-level cache, so one cache line is added to such strides.
constexpr std::size_t row_stride(std::size_t floats) {
  return floats * sizeof(float) % 4096 == 0 ? floats + kPartialSums : floats;
}

PackedLinear declare_packed(int in, int out, DType type);  // sizes only, no memory

// Stores the weights of output `column` (a row of W), rounded to the layer's type. The layer's
// arrays must be allocated. Thread-safe for different columns.
void pack_column(PackedLinear& linear, int column, const float* row, float bias);

// Reads `name`.weight and `name`.bias into a declared layer. Packed output n is row source_row(n)
// of the checkpoint, or zero if that is negative.
void pack_linear(const Checkpoint& checkpoint, const std::string& name, PackedLinear& linear,
                 const std::function<int(int)>& source_row);

// Takes room for `rows` quantised rows of up to `depth` values; nothing unless `type` is int8.
QuantisedRows take_quantised(Arena& arena, DType type, std::size_t rows, int depth);

// How a product is divided into tasks. It does not change the bits.
struct Schedule {
  int column_tasks = 0;   // tasks across the columns; 0: eight per thread
  int rows_per_task = 0;  // 0: all rows
};

// Computes dst = epilogue(src W^T + b) on all threads of the pool. `rows` may be 0.
struct GemmCall {
  const float* src = nullptr;
  std::size_t src_stride = 0;
  float* dst = nullptr;
  std::size_t dst_stride = 0;
  int rows = 0;
  Epilogue epilogue = Epilogue::store;
  QuantisedRows quantised = {};  // scratch for int8
  int num_panels = -1;           // computes only the first ones; negative: all
  Schedule schedule = {};
};
void apply(const PackedLinear& linear, const GemmCall& call, const Kernels& kernels,
           ThreadPool& pool) noexcept;

}  // namespace toto
