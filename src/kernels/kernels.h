// The table of kernels: every numeric inner loop of the optimised modes, once per instruction set.
//
// The same bits on every instruction set: outputs are vectorised over, sums are not. A sum over K
// runs in blocks of sum_block(K): inside a block one fused multiply-add after the other; then the
// block is added to the total, and what that addition rounded away begins the next block (Kahan's
// sum). Bias and residual join before the one last rounding. Row reductions use kPartialSums
// interleaved partial sums, added pairwise. Nothing depends on the number of rows, the tile, the
// thread or the vector width.
//
// Why so careful: a bound drawn from the reference's own rounding must hold for every single
// series, also where the reference was lucky. Short sums of small models need the shortest blocks:
// there the reference rounds least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "toto/toto.h"

namespace toto {

inline constexpr int kPanel = 32;        // output columns packed together, [K][kPanel]
inline constexpr int kValueBlock = 64;   // the same for attention's weighted mean, uncompensated
inline constexpr int kPartialSums = 16;  // interleaved sums of a row reduction
inline constexpr int kKeyPanel = 16;     // cached keys stored together, [head_dim][kKeyPanel]
inline constexpr int kScaleGroup = 128;  // terms that share a scale where weights are int8

// Terms of a sum of `depth` that are added up before they join the total.
constexpr int sum_block(int depth) { return depth < 512 ? 16 : 64; }

// What happens to `sum + bias` on its way to dst.
enum class Epilogue {
  store,  // dst = y
  add,    // dst += y: the residual connection
  gate,   // a panel holds kPanel/2 gate and kPanel/2 up columns: dst = silu(gate) * up
};

// Weights, packed: panels of kPanel columns, each
//   f32        [depth][kPanel]
//   bf16       [depth][kPanel], columns in the order of bf16_place()
//   int8       per group of kScaleGroup terms, the last one shorter: kPanel float scales, then
//              [pair of terms][kPanel][2]
// bf16 is widened and computed with as float32. int8 meets rows of int16, quantised as they come:
// products and sums within a group are exact integers, the groups' sums are added as float32. Both
// give the same bits everywhere, like float32.
constexpr std::size_t panel_bytes(DType type, int depth) {
  const std::size_t even = (static_cast<std::size_t>(depth) + 1) / 2 * 2;
  const std::size_t groups = (static_cast<std::size_t>(depth) + kScaleGroup - 1) / kScaleGroup;
  if (type == DType::int8) return even * kPanel + groups * kPanel * sizeof(float);
  return std::size_t(depth) * kPanel * (type == DType::bf16 ? 2 : 4);
}

// Where a panel's bf16 row keeps a column: beside the one half a panel away. Two columns lie in 32
// bits, of which a shift makes the first a float32 and a mask the second, whatever the vector
// width.
constexpr int bf16_place(int column) { return column % (kPanel / 2) * 2 + column / (kPanel / 2); }

// Rows as int16 with a scale for each group of kScaleGroup values.
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
  const std::byte* panels = nullptr;  // as above
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

// One query of one head over a cached prefix and what was appended to it. Positions count through
// both parts, so a prefix split in another place gives the same bits.
struct AttendArgs {
  const float* query = nullptr;  // [head_dim], rotated and divided by sqrt(head_dim)
  KeyValues prefix;
  KeyValues tail;
  int head_dim = 0;
  int value_stride = 0;     // head_dim rounded up to kPartialSums, padding zero
  float* dst = nullptr;     // [head_dim]
  float* scores = nullptr;  // scratch, room for both counts plus kKeyPanel each, rounded up
};

// One query of one head over scattered rows: the variates of a patch.
struct AttendRowsArgs {
  const float* query = nullptr;   // [head_dim]
  const float* keys = nullptr;    // row r's key is keys + r * stride
  const float* values = nullptr;  // likewise; readable up to head_dim rounded up to kPartialSums
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

struct Kernels {
  Isa isa = Isa::reference;
  const char* name = "";

  void (*gemm)(const GemmArgs& args) noexcept = nullptr;  // float32 weights
  void (*gemm_bf16)(const GemmArgs& args) noexcept = nullptr;
  void (*gemm_int8)(const GemmArgs& args) noexcept = nullptr;

  // One row to int16: values[i] = round(src[i] / scale), the largest of a group being +-32767.
  void (*quantise)(const float* src, int depth, std::int16_t* values,
                   float* scales) noexcept = nullptr;

  // dst = src / sqrt(mean(src^2) + epsilon) * weight; a null weight is all ones. Rows are padded
  // with zeros to a multiple of kPartialSums.
  void (*rms_norm)(const float* src, const float* weight, double epsilon, float* dst,
                   int size) noexcept = nullptr;

  // dst[d] = src[d] * a[d] + src[d ^ 1] * b[d]: rotation and xPos scale in one, pairs interleaved.
  // `size` is even; dst may be src.
  void (*rotate)(const float* src, const float* a, const float* b, float* dst,
                 int size) noexcept = nullptr;

  // dst = softmax(query . keys) . values
  void (*attend)(const AttendArgs& args) noexcept = nullptr;
  void (*attend_rows)(const AttendRowsArgs& args) noexcept = nullptr;

  // Sums over the lanes in float32, eight blocks at a time; over those in double.
  StudentSums (*student_sums)(const StudentBlock* blocks, int num_blocks,
                              double x) noexcept = nullptr;

  // acc[i] += weight * src[i] in double: folding two linear layers into one at load.
  void (*accumulate)(double* acc, double weight, const float* src, int size) noexcept = nullptr;
};

// One row for each instruction set, from the plainest to the fastest. To add one: its vec_*.h, its
// .cc and a row in dispatch.cc.
struct IsaRow {
  Isa isa;
  std::string_view name;                 // as the command line spells it
  bool (*available)() noexcept;          // to this CPU and build
  const Kernels& (*kernels)() noexcept;  // only called where available
};
std::span<const IsaRow> isa_rows() noexcept;

// The table for an instruction set; `automatic` is the best this CPU has. Throws Error(unsupported)
// if this build or CPU lacks it.
const Kernels& kernels_for(Isa isa);

}  // namespace toto
