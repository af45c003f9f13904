#include "base/error.h"
#include "kernels/tables.h"

namespace toto {

bool isa_available(Isa isa) noexcept {
  switch (isa) {
    case Isa::automatic:
    case Isa::reference:
      return true;
    case Isa::avx2:
#if defined(__x86_64__)
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
      return false;
#endif
    case Isa::avx512:
#if defined(__x86_64__)
      return isa_available(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl");
#else
      return false;
#endif
  }
  return false;
}

Isa best_isa() noexcept {
  if (isa_available(Isa::avx512)) return Isa::avx512;
  if (isa_available(Isa::avx2)) return Isa::avx2;
  return Isa::reference;
}

const Kernels& kernels_for(Isa isa) {
  if (isa == Isa::automatic) isa = best_isa();
  if (!isa_available(isa)) {
    fail(ErrorCode::unsupported, "this CPU has no {}; the best it has is {}: use --isa auto",
         name_of(isa), name_of(best_isa()));
  }
#if defined(__x86_64__)
  if (isa == Isa::avx2) return kernels::kAvx2Kernels;
  if (isa == Isa::avx512) {
    const bool vnni = __builtin_cpu_supports("avx512vnni");
    return vnni ? kernels::kAvx512VnniKernels : kernels::kAvx512Kernels;
  }
#endif
  return kernels::kReferenceKernels;
}

}  // namespace toto
