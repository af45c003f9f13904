#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/constants.h"
#include "kernels/tables.h"
#include "kernels/target.h"

TOTO_BEGIN_TARGET("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl")
namespace toto::kernels::avx512 {

inline constexpr Isa kIsa = Isa::avx512;
inline constexpr char kName[] = "avx512";
// Rows per tile: kTileRows x kPanel sums fit into the 32 registers.
inline constexpr int kTileRows = TOTO_SMALL_TILES ? 3 : 12;
inline constexpr int kIntTileRows = kTileRows;

#include "kernels/vec_avx512.h"

TOTO_INLINE Ints multiply_add_pairs(Ints a, Ints b, Ints sum) {
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(a.v, b.v))};
}

#include "kernels/kernels.inl"

}  // namespace toto::kernels::avx512
TOTO_END_TARGET

constinit const toto::Kernels toto::kernels::kAvx512Kernels = toto::kernels::avx512::kTable;

#endif
