#pragma once

namespace toto::bench {

// Matrix products of the base-size network, ours and the yardsticks', and the read bandwidth that
// bounds them for few rows.
void register_gemm_benchmarks();

}  // namespace toto::bench
