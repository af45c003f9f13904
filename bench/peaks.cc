#include "peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace toto::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int kRounds = 20000;

#if defined(__x86_64__)
// Twelve sums, as in a tile: enough to hide the latency of a multiply-add.
#define TOTO_FMA_ROUND(R)                                                                    \
  "vfmadd231ps %%" R "14, %%" R "15, %%" R "0\n vfmadd231ps %%" R "14, %%" R "15, %%" R      \
  "1\n vfmadd231ps %%" R "14, %%" R "15, %%" R "2\n vfmadd231ps %%" R "14, %%" R "15, %%" R  \
  "3\n vfmadd231ps %%" R "14, %%" R "15, %%" R "4\n vfmadd231ps %%" R "14, %%" R "15, %%" R  \
  "5\n vfmadd231ps %%" R "14, %%" R "15, %%" R "6\n vfmadd231ps %%" R "14, %%" R "15, %%" R  \
  "7\n vfmadd231ps %%" R "14, %%" R "15, %%" R "8\n vfmadd231ps %%" R "14, %%" R "15, %%" R  \
  "9\n vfmadd231ps %%" R "14, %%" R "15, %%" R "10\n vfmadd231ps %%" R "14, %%" R "15, %%" R \
  "11\n"

void multiply_add(Isa isa) {
  for (int round = 0; round < kRounds; ++round) {
    if (isa == Isa::avx512) {
      asm volatile(TOTO_FMA_ROUND("zmm")::
                       : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                         "xmm9", "xmm10", "xmm11");
    } else {
      asm volatile(TOTO_FMA_ROUND("ymm")::
                       : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                         "xmm9", "xmm10", "xmm11");
    }
  }
}
#endif

// Adds up eight words of 32 bytes at a time: a single sum would wait for its own last addition.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
std::uint64_t
sum_of(const std::byte* data, std::size_t bytes) {
  using Words = std::uint64_t __attribute__((vector_size(32)));
  constexpr int kSums = 8;
  Words sums[kSums] = {};
  for (std::size_t at = 0; at + sizeof sums <= bytes; at += sizeof sums) {
    for (int i = 0; i < kSums; ++i) {
      Words words;
      std::memcpy(&words, data + at + i * sizeof words, sizeof words);
      sums[i] += words;
    }
  }
  std::uint64_t total = 0;
  for (const Words& sum : sums) total += sum[0] + sum[1] + sum[2] + sum[3];
  return total;
}

}  // namespace

double fma_peak(Isa isa) {
#if defined(__x86_64__)
  if (isa != Isa::avx2 && isa != Isa::avx512) return 0;
  const Clock::time_point start = Clock::now();
  multiply_add(isa);
  const double lanes = isa == Isa::avx512 ? 16 : 8;
  return 12.0 * kRounds * lanes * 2 / seconds_since(start) * 1e-9;
#else
  static_cast<void>(isa);
  return 0;
#endif
}

double read_seconds(std::span<const std::span<const std::byte>> arrays, ThreadPool& pool) {
  const int pieces = pool.num_threads() * 8;
  volatile std::uint64_t sink = 0;
  const Clock::time_point start = Clock::now();
  for (const std::span<const std::byte> array : arrays) {
    pool.run(pieces, [&](int piece, int) {
      const std::size_t first = array.size() * piece / pieces / 64 * 64;
      const std::size_t last = array.size() * (piece + 1) / pieces / 64 * 64;
      sink = sum_of(array.data() + first, last - first);
    });
  }
  return seconds_since(start);
}

}  // namespace toto::bench
