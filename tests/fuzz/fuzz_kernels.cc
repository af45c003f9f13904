// Any product gives the same bits in plain C++ and on every instruction set of this CPU.
//
// The first bytes say its shape, the others become numbers of very different size: what order and
// rounding do shows best where terms cancel.
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/tables.h"
#include "model/layers.h"
#include "require.h"

namespace {

using namespace toto;

// Reads numbers off the input, over and over.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t next() { return data_[at_++ % size_]; }
  int below(int limit) { return (next() << 8 | next()) % limit; }
  float number() {
    const int mantissa = static_cast<std::int8_t>(next());
    const int exponent = next() % 48 - 24;
    return std::ldexp(static_cast<float>(mantissa), exponent);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

std::vector<const Kernels*> vector_kernels() {
  std::vector<const Kernels*> tables;
  for (const Isa isa : all_isas()) {
    if (isa != Isa::reference && isa_available(isa)) tables.push_back(&kernels_for(isa));
  }
  return tables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  Bytes bytes(data, size);
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8};
  constexpr Epilogue kEpilogues[] = {Epilogue::store, Epilogue::add, Epilogue::silu,
                                     Epilogue::gate};
  const DType type = kTypes[bytes.below(4)];
  const Epilogue epilogue = kEpilogues[bytes.below(4)];
  const int rows = 1 + bytes.below(20), depth = 1 + bytes.below(300), panels = 1 + bytes.below(2);

  PackedLinear linear = declare_packed(depth, panels * kPanel, type);
  linear.panels.allocate();
  linear.bias.allocate();
  std::vector<float> row(depth);
  for (int column = 0; column < panels * kPanel; ++column) {
    for (float& weight : row) weight = bytes.number();
    pack_column(linear, column, row.data(), bytes.number());
  }
  const std::size_t stride = row_stride(depth), out_stride = row_stride(panels * kPanel);
  std::vector<float> src(rows * stride), before(rows * out_stride);
  for (float& value : src) value = bytes.number();
  for (float& value : before) value = bytes.number();

  ThreadPool pool(1);
  const auto product = [&](const Kernels& kernels) {
    Arena arena;
    arena.start_measuring();
    take_quantised(arena, type, rows, depth);
    arena.reserve(arena.used());
    arena.start_handing_out();
    std::vector<float> dst = before;
    apply(linear,
          {.src = src.data(),
           .src_stride = stride,
           .dst = dst.data(),
           .dst_stride = out_stride,
           .rows = rows,
           .epilogue = epilogue,
           .quantised = take_quantised(arena, type, rows, depth)},
          kernels, pool);
    return dst;
  };
  const std::vector<float> expected = product(kernels_for(Isa::reference));
  for (const Kernels* kernels : vector_kernels()) {
    const std::vector<float> found = product(*kernels);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool both_nan = std::isnan(found[i]) && std::isnan(expected[i]);
      const bool same =
          std::bit_cast<std::uint32_t>(found[i]) == std::bit_cast<std::uint32_t>(expected[i]);
      require(same || both_nan);
    }
  }
  return 0;
}
