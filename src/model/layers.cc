#include "model/layers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/bf16.h"
#include "base/f16.h"
#include "model/checkpoint.h"

namespace toto {
namespace {

// `place` is the position of the column in a panel's row.
template <typename Weight, typename Round>
void pack_rounded(PackedLinear& linear, int column, int place, const float* row,
                  const Round& round) {
  auto* dst = reinterpret_cast<Weight*>(linear.panels.packing()) +
              std::size_t(column / kPanel) * linear.in * kPanel + place;
  for (int k = 0; k < linear.in; ++k) dst[std::size_t(k) * kPanel] = round(row[k]);
}

// Each group of kScaleGroup terms has a float scale per column: largest magnitude / 127.
void pack_int8(PackedLinear& linear, int column, const float* row) {
  constexpr float kLargest = 127;
  const int c = column % kPanel;
  std::byte* group =
      linear.panels.packing() + column / kPanel * panel_bytes(DType::int8, linear.in);
  for (int k0 = 0; k0 < linear.in; k0 += kScaleGroup) {
    const int terms = std::min(linear.in - k0, kScaleGroup);
    auto* scales = reinterpret_cast<float*>(group);
    auto* weights = reinterpret_cast<std::int8_t*>(scales + kPanel);
    float largest = 0;
    for (int k = 0; k < terms; ++k) largest = std::max(largest, std::fabs(row[k0 + k]));
    scales[c] = largest / kLargest;
    for (int k = 0; k < terms && scales[c] > 0; ++k) {
      // A denormal scale is rounded itself, so the quotient may exceed 127.
      const float rounded = std::nearbyint(row[k0 + k] / scales[c]);
      weights[(k / 2 * kPanel + c) * 2 + k % 2] =
          static_cast<std::int8_t>(std::clamp(rounded, -kLargest, kLargest));
    }
    group += kPanel * sizeof(float) + round_up(terms, 2) * kPanel;
  }
}

}  // namespace

PackedLinear declare_packed(int in, int out, DType type) {
  PackedLinear linear;
  linear.in = in;
  linear.out = out;
  linear.type = type;
  linear.num_panels = (out + kPanel - 1) / kPanel;
  linear.panels = WeightArray<std::byte>(linear.num_panels * panel_bytes(type, in));
  linear.bias = WeightArray<float>(std::size_t(linear.num_panels) * kPanel);
  return linear;
}

// f16 and bf16 round to nearest even; float32 is copied.
void pack_column(PackedLinear& linear, int column, const float* row, float bias) {
  if (linear.type == DType::int8) {
    pack_int8(linear, column, row);
  } else if (linear.type == DType::f16) {
    pack_rounded<std::uint16_t>(linear, column, column % kPanel, row, to_f16);
  } else if (linear.type == DType::bf16) {
    pack_rounded<std::uint16_t>(linear, column, bf16_place(column % kPanel), row, to_bf16);
  } else {
    pack_rounded<float>(linear, column, column % kPanel, row, [](float value) { return value; });
  }
  linear.bias.packing()[column] = bias;
}

void pack_linear(const Checkpoint& checkpoint, const std::string& name, PackedLinear& linear,
                 const std::function<int(int)>& source_row) {
  const std::vector<float> weight = checkpoint.read(name + ".weight");
  const std::vector<float> bias = checkpoint.read(name + ".bias");
  linear.panels.allocate();
  linear.bias.allocate();
  for (int n = 0; n < linear.out; ++n) {
    if (const int row = source_row(n); row >= 0) {
      pack_column(linear, n, weight.data() + std::size_t(row) * linear.in, bias[row]);
    }
  }
}

QuantisedRows take_quantised(Arena& arena, DType type, std::size_t rows, int depth) {
  QuantisedRows quantised;
  if (type != DType::int8) return quantised;
  quantised.stride = round_up(depth, kPanel);
  quantised.scale_stride = round_up(depth, kScaleGroup) / kScaleGroup;
  quantised.values = arena.take<std::int16_t>(rows * quantised.stride);
  quantised.scales = arena.take<float>(rows * quantised.scale_stride);
  return quantised;
}

// Divides the product into columns x rows tasks; a task computes whole panels, so the division does
// not change the bits.
void apply(const PackedLinear& linear, const GemmCall& call, const Kernels& kernels,
           ThreadPool& pool) noexcept {
  if (call.rows == 0) return;
  if (linear.type == DType::int8) {
    const QuantisedRows& to = call.quantised;
    run_rows(pool, call.rows, [&](int row, int) {
      kernels.quantise(call.src + row * call.src_stride, linear.in, to.values + row * to.stride,
                       to.scales + row * to.scale_stride);
    });
  }
  const auto gemm = linear.type == DType::int8   ? kernels.gemm_int8
                    : linear.type == DType::f16  ? kernels.gemm_f16
                    : linear.type == DType::bf16 ? kernels.gemm_bf16
                                                 : kernels.gemm;
  const int panels = call.num_panels < 0 ? linear.num_panels : call.num_panels;
  // Eight tasks per thread: small enough to balance the load, large enough that a task's overhead
  // does not matter.
  const int usual = pool.num_threads() == 1 ? 1 : pool.num_threads() * 8;
  const Schedule& schedule = call.schedule;
  const int columns = std::min(panels, schedule.column_tasks > 0 ? schedule.column_tasks : usual);
  const int height = schedule.rows_per_task > 0 ? schedule.rows_per_task : call.rows;
  const int tasks = columns * ((call.rows + height - 1) / height);
  pool.run(tasks, [&](int task, int) {
    const int column = task % columns, row = task / columns * height;
    GemmArgs args;
    args.src = call.src + row * call.src_stride;
    args.src_stride = call.src_stride;
    args.quantised = call.quantised;
    args.quantised.values += row * call.quantised.stride;
    args.quantised.scales += row * call.quantised.scale_stride;
    args.dst = call.dst + row * call.dst_stride;
    args.dst_stride = call.dst_stride;
    args.rows = std::min(height, call.rows - row);
    args.epilogue = call.epilogue;
    args.panels = linear.panels.data();
    args.bias = linear.bias.data();
    args.depth = linear.in;
    args.first_panel = static_cast<int>(std::int64_t{panels} * column / columns);
    args.last_panel = static_cast<int>(std::int64_t{panels} * (column + 1) / columns);
    gemm(args);
  });
}

}  // namespace toto
