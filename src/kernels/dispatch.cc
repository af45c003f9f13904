#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "kernels/tables.h"

namespace toto {
namespace {

bool always() noexcept { return true; }
const Kernels& reference_kernels() noexcept { return kernels::kReferenceKernels; }

#if defined(__x86_64__)
bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
const Kernels& avx2_kernels() noexcept { return kernels::kAvx2Kernels; }
const Kernels& avx512_kernels() noexcept {
  const bool vnni = __builtin_cpu_supports("avx512vnni");
  return vnni ? kernels::kAvx512VnniKernels : kernels::kAvx512Kernels;
}
#else
bool never() noexcept { return false; }
constexpr auto has_avx2 = never, has_avx512 = never;
constexpr auto avx2_kernels = reference_kernels, avx512_kernels = reference_kernels;
#endif

constexpr std::array<IsaRow, 3> kRows = {{
    {Isa::reference, "reference", always, reference_kernels},
    {Isa::avx2, "avx2", has_avx2, avx2_kernels},
    {Isa::avx512, "avx512", has_avx512, avx512_kernels},
}};

const IsaRow* row_of(Isa isa) noexcept {
  const auto found = std::ranges::find(kRows, isa, &IsaRow::isa);
  return found != kRows.end() ? &*found : nullptr;
}

}  // namespace

std::span<const IsaRow> isa_rows() noexcept { return kRows; }

std::span<const Isa> all_isas() noexcept {
  static constexpr auto kIsas = [] {
    std::array<Isa, kRows.size()> isas{};
    std::ranges::transform(kRows, isas.begin(), &IsaRow::isa);
    return isas;
  }();
  return kIsas;
}

bool isa_available(Isa isa) noexcept {
  const IsaRow* row = row_of(isa);
  return isa == Isa::automatic || (row != nullptr && row->available());
}

// Rows are ordered by speed, so the last available one is the best.
Isa best_isa() noexcept {
  Isa best = Isa::reference;
  for (const IsaRow& row : kRows) {
    if (row.available()) best = row.isa;
  }
  return best;
}

const Kernels& kernels_for(Isa isa) {
  if (isa == Isa::automatic) isa = best_isa();
  if (!isa_available(isa)) {
    fail(ErrorCode::unsupported, "this CPU has no {}; the best it has is {}: use --isa auto",
         name_of(isa), name_of(best_isa()));
  }
  return row_of(isa)->kernels();
}

}  // namespace toto
