// The peaks of this machine, with which kernels are compared.
#pragma once

#include <cstddef>
#include <span>

#include "base/threads.h"
#include "kernels/kernels.h"

namespace toto::bench {

// Multiply-adds per second, in units of 1e9 floating-point operations, of one thread that does
// nothing else, in vectors as wide as the instruction set has them. 0: it has none.
double fma_peak(Isa isa);

// Seconds to read every byte once, on all threads, in pieces as a forward pass reads them.
double read_seconds(std::span<const std::span<const std::byte>> arrays, ThreadPool& pool);

}  // namespace toto::bench
