// Is it still as fast as it was? Compares the kernels with what the same machine gives at the same
// moment: multiply-adds that do nothing else, and reading without computing. A share of a peak
// hardly depends on the machine; a regression of a fifth shows.
//
//   speed_gate                  exit code 0: every share is there; 1: one is not, and which
//   speed_gate --handicap 1.25  as if ours took 1.25 times as long: shows that the gate would fail
//
// A disturbance can only make us look slower, never faster: whoever fails is tried again.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "model/layers.h"
#include "peaks.h"

namespace toto::bench {
namespace {

constexpr int kThreads = 1;  // of products: what another process takes from a core shows least
constexpr int kRounds = 12;
constexpr int kAttempts = 12;
constexpr auto kPause = std::chrono::seconds(2);  // after a miss: most disturbances pass
constexpr double kTolerated = 0.82;               // of the usual share: a fifth less fails

// A product of the base-size network, and the share of its peak that it usually reaches.
struct Gate {
  const char* name;
  DType type;
  int rows;
  bool by_reading;  // else by multiply-adds
  double avx2;
  double avx512;  // a guess on the low side until one is measured
};
constexpr Gate kGates[] = {
    {"one row, f32", DType::f32, 1, true, 1.04, 0.90},
    {"one row, bf16", DType::bf16, 1, true, 0.80, 0.70},
    {"one row, int8", DType::int8, 1, true, 0.64, 0.55},
    {"8 rows, f32", DType::f32, 8, false, 0.86, 0.40},
    {"64 rows, f32", DType::f32, 64, false, 0.92, 0.65},
    {"64 rows, bf16", DType::bf16, 64, false, 0.89, 0.60},
    {"64 rows, int8", DType::int8, 64, false, 1.07, 0.80},
};

// What is measured by reading has four matrices of 768 by 3072: 38 MB of float32, more than most
// caches hold. What is measured by arithmetic has small ones, one after another, that stay in the
// second-level cache: what other processes do to the memory must not show.
constexpr int kDepth = 768;
struct StackSize {
  int matrices, columns, passes;
};
constexpr StackSize kFarAway = {.matrices = 4, .columns = 3072, .passes = 1};
constexpr StackSize kAtHand = {.matrices = 1, .columns = 128, .passes = 24};

std::vector<PackedLinear> made_stack(DType type, const StackSize& size) {
  std::vector<PackedLinear> stack;
  std::vector<float> row(kDepth);
  for (int matrix = 0; matrix < size.matrices; ++matrix) {
    PackedLinear linear = declare_packed(kDepth, size.columns, type);
    linear.panels.allocate();
    linear.bias.allocate();
    for (int column = 0; column < size.columns; ++column) {
      for (int k = 0; k < kDepth; ++k) {
        row[k] = static_cast<float>((column * 31 + k * 17 + matrix) % 201 - 100) * 0.01f;
      }
      pack_column(linear, column, row.data(), 0.0f);
    }
    stack.push_back(std::move(linear));
  }
  return stack;
}

class Products {
 public:
  Products(const Gate& gate, ThreadPool& pool)
      : size_(gate.by_reading ? kFarAway : kAtHand),
        stack_(made_stack(gate.type, size_)),
        rows_(gate.rows),
        pool_(pool) {
    src_ = Buffer<float>(rows_ * row_stride(kDepth));
    dst_ = Buffer<float>(rows_ * row_stride(size_.columns));
    for (std::size_t i = 0; i < src_.size(); ++i) {
      src_[i] = static_cast<float>(i % 37) * 0.1f - 1.8f;
    }
    arena_.start_measuring();
    take_quantised(arena_, gate.type, rows_, kDepth);
    arena_.reserve(arena_.used());
    arena_.start_handing_out();
    quantised_ = take_quantised(arena_, gate.type, rows_, kDepth);
    for (const PackedLinear& linear : stack_) arrays_.push_back(linear.panels.as_bytes());
  }
  double seconds() {
    const auto start = std::chrono::steady_clock::now();
    for (int pass = 0; pass < size_.passes; ++pass) {
      for (const PackedLinear& linear : stack_) {
        apply(linear,
              {.src = src_.data(),
               .src_stride = row_stride(kDepth),
               .dst = dst_.data(),
               .dst_stride = row_stride(size_.columns),
               .rows = rows_,
               .quantised = quantised_},
              kernels_for(Isa::automatic), pool_);
      }
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  double reading() { return read_seconds(arrays_, pool_); }
  double gigaflop() const {
    return 2e-9 * size_.passes * size_.matrices * kDepth * size_.columns * rows_;
  }

 private:
  StackSize size_;
  std::vector<PackedLinear> stack_;
  std::vector<std::span<const std::byte>> arrays_;
  int rows_;
  ThreadPool& pool_;
  Buffer<float> src_, dst_;
  Arena arena_;
  QuantisedRows quantised_;
};

// The best of each, taken in turns.
double share_of(const Gate& gate, Products& products, double handicap) {
  double ours = INFINITY, peak = INFINITY;
  for (int round = 0; round < kRounds; ++round) {
    ours = std::min(ours, products.seconds());
    peak = std::min(
        peak, gate.by_reading ? products.reading() : products.gigaflop() / fma_peak(best_isa()));
  }
  return peak / (ours * handicap);
}

int run(double handicap) {
  if (best_isa() == Isa::reference) {
    std::fprintf(stderr, "error: this CPU has no vector kernels, so there is nothing to measure\n");
    return 1;
  }
  ThreadPool pool(kThreads);
  int failed = 0;
  fmt::print("{:<16} {:>8} {:>9}   ({})\n", "product", "share", "at least", name_of(best_isa()));
  for (const Gate& gate : kGates) {
    const double at_least = kTolerated * (best_isa() == Isa::avx512 ? gate.avx512 : gate.avx2);
    Products products(gate, pool);
    double share = 0;
    for (int attempt = 0; attempt < kAttempts && share < at_least; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(kPause);
      share = std::max(share, share_of(gate, products, handicap));
    }
    const bool good = share >= at_least;
    failed += good ? 0 : 1;
    fmt::print("{:<16} {:>7.0f}% {:>8.0f}%   {}\n", gate.name, 100 * share, 100 * at_least,
               good ? "ok" : "TOO SLOW");
  }
  if (failed > 0) std::fprintf(stderr, "error: %d products are too slow\n", failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace toto::bench

int main(int argc, char** argv) {
  double handicap = 1;
  if (argc == 3 && std::string(argv[1]) == "--handicap") {
    handicap = std::strtod(argv[2], nullptr);
  } else if (argc != 1) {
    handicap = 0;
  }
  if (!(handicap >= 1)) {
    std::fprintf(stderr, "usage: speed_gate [--handicap FACTOR]   (at least 1)\n");
    return 2;
  }
  try {
    return toto::bench::run(handicap);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
