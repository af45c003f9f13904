// The table of kernels: every numeric inner loop of the optimised modes, once per instruction set.
//
// All instruction sets compute the same bits: code is vectorised over outputs, never over the terms
// of a sum. A sum over K runs in blocks of sum_block(K): inside a block, one fused multiply-add
// after the other; then the block is added to the total, and the rounding error of that addition
// starts the next block (Kahan's sum). Bias and residual are added before the one final rounding.
// Row reductions use kPartialSums interleaved partial sums, added pairwise. Nothing depends on the
// number of rows, the tile, the thread or the vector width.
//
// Reason: the accuracy bound, derived from the reference's own rounding error, must hold for every
// single series, including those where the reference's error happened to be small. Short sums of
// small models need the shortest blocks: there the reference rounds least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "toto/toto.h"

namespace toto {

inline constexpr int kPanel = 32;        // output columns packed together, [K][kPanel]
inline constexpr int kValueBlock = 64;   // terms per block of attention's mean, uncompensated
inline constexpr int kPartialSums = 16;  // interleaved sums of a row reduction
inline constexpr int kKeyPanel = 16;     // cached keys stored together, [head_dim][kKeyPanel]
inline constexpr int kScaleGroup = 128;  // terms that share a scale if weights are int8

// Terms per block of a sum of `depth` terms.
constexpr int sum_block(int depth) { return depth < 512 ? 16 : 64; }

// What is done with y = sum + bias.
enum class Epilogue {
  store,  // dst = y
  add,    // dst += y: the residual connection
  silu,   // dst = silu(y)
  gate,   // a panel holds kPanel/2 gate and kPanel/2 up columns: dst = silu(gate) * up
};

// Bytes of one panel of kPanel packed columns. Layouts:
//   f32        [depth][kPanel]
//   f16        [depth][kPanel]
//   bf16       [depth][kPanel], columns in the order of bf16_place()
//   int8       per group of kScaleGroup terms, the last one shorter: kPanel float scales, then
//              [pair of terms][kPanel][2]
// f16 and bf16 are widened to float32 before it is used. int8 is multiplied with rows quantised to
// int16: products and sums within a group are exact integers, the groups' sums are added as
// float32. Both compute the same bits on every CPU, like float32.
constexpr std::size_t panel_bytes(DType type, int depth) {
  const std::size_t even = (static_cast<std::size_t>(depth) + 1) / 2 * 2;
  const std::size_t groups = (static_cast<std::size_t>(depth) + kScaleGroup - 1) / kScaleGroup;
  if (type == DType::int8) return even * kPanel + groups * kPanel * sizeof(float);
  return std::size_t(depth) * kPanel * (type == DType::f32 ? 4 : 2);
}

// Position of a column in a panel's bf16 row: next to the column half a panel away. The two share
// 32 bits; a shift turns the first into a float32 and a mask the second, for any vector width.
constexpr int bf16_place(int column) { return column % (kPanel / 2) * 2 + column / (kPanel / 2); }

// Rows quantised to int16 with one scale per group of kScaleGroup values. Owned by the caller.
struct QuantisedRows {
  std::int16_t* values = nullptr;  // [row][stride], an odd depth padded with a zero
  float* scales = nullptr;         // [row][scale_stride]
  std::size_t stride = 0;
  std::size_t scale_stride = 0;
};

// dst[row][column] for rows [0, rows) and panels [first_panel, last_panel).
struct GemmArgs {
  const float* src = nullptr;         // [rows][depth], row stride src_stride; not read for int8
  QuantisedRows quantised;            // for int8
  const std::byte* panels = nullptr;  // packed weights, see panel_bytes()
  const float* bias = nullptr;        // [panel][kPanel]
  float* dst = nullptr;               // row stride dst_stride, room for whole panels
  std::size_t src_stride = 0;
  std::size_t dst_stride = 0;
  int rows = 0;
  int depth = 0;
  int first_panel = 0;
  int last_panel = 0;
  Epilogue epilogue = Epilogue::store;
};

// Keys and values of consecutive positions of one head.
struct KeyValues {
  const float* keys = nullptr;    // [position / kKeyPanel][head_dim][kKeyPanel]
  const float* values = nullptr;  // [position][value_stride]
  int count = 0;
};

// One query of one head over a cached prefix and the tail appended to it. Positions are numbered
// through both parts, so the bits do not depend on where the context is split.
struct AttendArgs {
  const float* query = nullptr;  // [head_dim], rotated and divided by sqrt(head_dim)
  KeyValues prefix;
  KeyValues tail;
  int head_dim = 0;
  int value_stride = 0;     // head_dim rounded up to kPartialSums, padding zero
  float* dst = nullptr;     // [head_dim]
  float* scores = nullptr;  // scratch, room for both counts plus kKeyPanel each, rounded up
};

// One query of one head over selected rows: the variates of a patch.
struct AttendRowsArgs {
  const float* query = nullptr;   // [head_dim]
  const float* keys = nullptr;    // row r's key is keys + r * stride
  const float* values = nullptr;  // same stride; readable to head_dim rounded up to kPartialSums
  std::size_t stride = 0;
  const int* rows = nullptr;  // [count]
  int count = 0;
  int head_dim = 0;
  float scale = 1;          // 1 / sqrt(head_dim)
  float* dst = nullptr;     // [head_dim]
  float* scores = nullptr;  // scratch, count rounded up to kPartialSums
};

// Sixteen weighted Student-T distributions, one per lane. With a = df / 2, z = t^2 / df,
// y = 1 / (1 + z) and s = log(1 + z), the tail of each is
//
//   P(T > |t|) = 1/2 y^a (sqrt(1 - y) near(y) + y^(4 - 1/4) (erfcx(sqrt(S s)) + sqrt(S s) far(s)))
//
// with S = a + 4 - 1/4: the formula of model/student_lanes.h with 4 shifts and 3 terms, whose own
// error is 4e-8; in float32 the sum of a mixture is right to 3e-7.
inline constexpr int kStudentBlock = 16;
inline constexpr int kStudentShift = 4;
struct StudentBlock {
  using Row = float[kStudentBlock];
  Row loc_high, loc_low;  // the location is their sum: a float alone would round narrow components
  Row inv_scale, weight;  // weight 0: an unused lane
  Row inv_sqrt_df, half_df;
  Row peak;    // weight / scale * the standard density at 0
  Row moment;  // scale * df / (df - 1)
  Row near[kStudentShift];
  Row far[4];
};

// A mixture at one point: its mass below and above, each accurate where it is small, its density,
// and E[X; X > x].
struct StudentSums {
  double below = 0, above = 0, density = 0, mean_above = 0;
};

// Function pointers of one instruction set. All are pure functions of their arguments: thread-safe
// as long as the outputs do not overlap. Nothing allocates or throws.
struct Kernels {
  Isa isa = Isa::reference;
  const char* name = "";

  void (*gemm)(const GemmArgs& args) noexcept = nullptr;  // float32 weights
  void (*gemm_f16)(const GemmArgs& args) noexcept = nullptr;
  void (*gemm_bf16)(const GemmArgs& args) noexcept = nullptr;
  void (*gemm_int8)(const GemmArgs& args) noexcept = nullptr;

  // Quantises one row: values[i] = round(src[i] / scale), the largest of a group being +-32767.
  void (*quantise)(const float* src, int depth, std::int16_t* values,
                   float* scales) noexcept = nullptr;

  // dst = src / sqrt(mean(src^2) + epsilon) * weight; a null weight is all ones. Rows are padded
  // with zeros to a multiple of kPartialSums.
  void (*rms_norm)(const float* src, const float* weight, double epsilon, float* dst,
                   int size) noexcept = nullptr;

  // dst[d] = src[d] * a[d] + src[d ^ 1] * b[d]: rotation and xPos scale in one step, pairs
  // interleaved. `size` is even; dst may equal src.
  void (*rotate)(const float* src, const float* a, const float* b, float* dst,
                 int size) noexcept = nullptr;

  // dst = softmax(query . keys) . values
  void (*attend)(const AttendArgs& args) noexcept = nullptr;
  void (*attend_rows)(const AttendRowsArgs& args) noexcept = nullptr;

  // Sums over the lanes in float32, eight blocks at a time; over those in double.
  StudentSums (*student_sums)(const StudentBlock* blocks, int num_blocks,
                              double x) noexcept = nullptr;

  // acc[i] += weight * src[i] in double: folds two linear layers into one at load.
  void (*accumulate)(double* acc, double weight, const float* src, int size) noexcept = nullptr;
};

// One row per instruction set, from the plainest to the fastest. To add one: write its vec_*.h and
// its .cc and add a row in dispatch.cc.
struct IsaRow {
  Isa isa;
  std::string_view name;                 // for --isa
  bool (*available)() noexcept;          // on this CPU and in this build
  const Kernels& (*kernels)() noexcept;  // call only if available
};
std::span<const IsaRow> isa_rows() noexcept;

// The kernels of an instruction set; `automatic` selects the best one of this CPU. Throws
// Error(unsupported) if this build or CPU lacks it.
const Kernels& kernels_for(Isa isa);

}  // namespace toto
