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

// y = x W^T + b with W in panels (kernels.h), zero-padded to whole ones.
struct PackedLinear {
  WeightArray<std::byte> panels;
  WeightArray<float> bias;
  DType type = DType::f32;
  int in = 0;
  int out = 0;
  int num_panels = 0;

  int padded_out() const { return num_panels * kPanel; }
};

// Floats from one row of activations to the next: rows a multiple of 4 KiB apart would compete for
// the same lines of the first-level cache.
constexpr std::size_t row_stride(std::size_t floats) {
  return floats * sizeof(float) % 4096 == 0 ? floats + kPartialSums : floats;
}

PackedLinear declare_packed(int in, int out, DType type);  // its sizes; no memory is taken

// Puts output `column`'s weights, a row of W, into its place, rounded to the layer's type. The
// layer's arrays are allocated.
void pack_column(PackedLinear& linear, int column, const float* row, float bias);

// Reads `name`.weight and .bias into a declared layer; packed output n is the checkpoint's row
// source_row(n), or zero if that is negative.
void pack_linear(const Checkpoint& checkpoint, const std::string& name, PackedLinear& linear,
                 const std::function<int(int)>& source_row);

// Room for `rows` rows of up to `depth` values, taken only where the type needs it.
QuantisedRows take_quantised(Arena& arena, DType type, std::size_t rows, int depth);

// How a product is cut into tasks. It never changes the bits.
struct Schedule {
  int column_tasks = 0;   // 0: as many as let threads share evenly
  int rows_per_task = 0;  // 0: all of them
};

// dst = epilogue(src W^T + b) over all threads. `rows` may be 0.
struct GemmCall {
  const float* src = nullptr;
  std::size_t src_stride = 0;
  float* dst = nullptr;
  std::size_t dst_stride = 0;
  int rows = 0;
  Epilogue epilogue = Epilogue::store;
  QuantisedRows quantised = {};  // scratch for int8
  int num_panels = -1;           // only the first ones; all of them if negative
  Schedule schedule = {};
};
void apply(const PackedLinear& linear, const GemmCall& call, const Kernels& kernels,
           ThreadPool& pool) noexcept;

}  // namespace toto
