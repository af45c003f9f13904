// The kernel tables, one per instruction set; dispatch.cc selects one.
#pragma once

#include "kernels/kernels.h"

namespace toto::kernels {

extern const Kernels kReferenceKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;

}  // namespace toto::kernels
