// The tables the instruction sets define; dispatch.cc chooses among them.
#pragma once

#include "kernels/kernels.h"

namespace toto::kernels {

extern const Kernels kReferenceKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;

}  // namespace toto::kernels
