#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/constants.h"
#include "kernels/tables.h"
#include "kernels/target.h"

TOTO_BEGIN_TARGET("avx2,fma,f16c")
namespace toto::kernels::avx2 {

inline constexpr Isa kIsa = Isa::avx2;
inline constexpr char kName[] = "avx2";
// Rows per tile: kTileRows x kPanel sums fit into the 16 registers. Integer products need one more
// register per row.
inline constexpr int kTileRows = 3;
inline constexpr int kIntTileRows = 2;

#include "kernels/vec_avx2.h"

#include "kernels/kernels.inl"

}  // namespace toto::kernels::avx2
TOTO_END_TARGET

constinit const toto::Kernels toto::kernels::kAvx2Kernels = toto::kernels::avx2::kTable;

#endif
