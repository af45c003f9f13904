// Finds regressions of speed. Compares kernels and whole forecasts with the peaks of the same
// machine at the same moment: multiply-adds that do nothing else, and reading without computing. A
// share of a peak hardly depends on the machine; a regression of a fifth is found where the usual
// shares were measured.
//
//   speed_gate MODEL                exit code 0: every share is reached; 1: one is not
//   speed_gate MODEL --self-check   0: a run as if ours took 1.2 times as long (3 times on CPUs
//   with
//                                   full-width AVX-512, whose shares are guesses) fails
//
// Other load can only make us look slower, never faster, so a failed measurement is repeated.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "gate_main.h"
#include "model/layers.h"
#include "peaks.h"

namespace toto::bench {
namespace {

constexpr int kThreads = 1;  // of products: one thread suffers least from other processes
constexpr int kRounds = 12;
constexpr int kAttempts = 40;
constexpr int kSelfCheckAttempts = 3;
constexpr auto kPause = std::chrono::seconds(3);  // after a miss: most disturbances pass
constexpr double kTolerated = 0.85;               // of the usual share: a fifth longer fails

// The share of its peak that something usually reaches.
struct Usual {
  double avx2;
  double wide_avx512;   // full-width AVX-512, twice the peak of AVX2: low guesses
  double split_avx512;  // CPUs that split it into halves (Zen 4), with the peak of AVX2
};

// Whether 512-bit multiply-adds double the peak of 256-bit ones on this CPU.
bool wide_avx512() {
  static const bool wide = [] {
    if (best_isa() != Isa::avx512) return false;
    double narrow = 0, full = 0;
    for (int round = 0; round < kRounds; ++round) {
      narrow = std::max(narrow, fma_peak(Isa::avx2));
      full = std::max(full, fma_peak(Isa::avx512));
    }
    return full > 1.4 * narrow;
  }();
  return wide;
}
double usual_share(const Usual& usual) {
  if (best_isa() != Isa::avx512) return usual.avx2;
  return wide_avx512() ? usual.wide_avx512 : usual.split_avx512;
}
double noticed_handicap() { return wide_avx512() ? 3 : 1.2; }

// A product of the base-size network.
struct ProductGate {
  const char* name;
  DType type;
  int rows;
  bool by_reading;  // else by multiply-adds
  Usual usual;
};
constexpr ProductGate kProducts[] = {
    {"one row, f32", DType::f32, 1, true, {1.04, 0.90, 1.04}},
    {"one row, bf16", DType::bf16, 1, true, {0.80, 0.70, 0.76}},
    {"one row, int8", DType::int8, 1, true, {0.64, 0.55, 0.61}},
    {"8 rows, f32", DType::f32, 8, false, {0.86, 0.40, 0.91}},
    {"8 rows, bf16", DType::bf16, 8, false, {0.84, 0.40, 0.86}},
    {"64 rows, f32", DType::f32, 64, false, {0.92, 0.65, 0.89}},
    {"64 rows, bf16", DType::bf16, 64, false, {0.89, 0.60, 0.85}},
    {"64 rows, int8", DType::int8, 64, false, {1.07, 0.80, 1.05}},
};

// A whole forecast: attention, sampling, quantiles and everything between. Its peak is the time of
// `gigaflop` multiply-adds, a round number close to the number it needs.
struct ForecastGate {
  const char* name;
  int context, horizon, samples;
  double gigaflop;
  Usual usual;
};
constexpr ForecastGate kForecasts[] = {
    {"exact quantiles", 96, 24, 0, 0.03, {0.50, 0.25, 0.48}},
    {"128 samples", 96, 24, 128, 0.03, {0.63, 0.3, 0.61}},
    {"64 long paths", 2048, 96, 64, 2.0, {0.90, 0.45, 0.80}},
};

// Products measured by reading use four matrices of 768 by 3072: 38 MB of float32, more than most
// caches hold. Products measured by arithmetic use small ones in turn that stay in the second-level
// cache, so that other processes' use of memory has no effect.
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
  Products(const ProductGate& gate, ThreadPool& pool)
      : size_(gate.by_reading ? kFarAway : kAtHand),
        stack_(made_stack(gate.type, size_)),
        rows_(gate.rows),
        by_reading_(gate.by_reading),
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
  double peak_seconds() {
    if (by_reading_) return read_seconds(arrays_, pool_);
    return 2e-9 * size_.passes * size_.matrices * kDepth * size_.columns * rows_ /
           fma_peak(best_isa());
  }

 private:
  StackSize size_;
  std::vector<PackedLinear> stack_;
  std::vector<std::span<const std::byte>> arrays_;
  int rows_;
  bool by_reading_;
  ThreadPool& pool_;
  Buffer<float> src_, dst_;
  Arena arena_;
  QuantisedRows quantised_;
};

class Forecasts {
 public:
  Forecasts(const ForecastGate& gate, const Engine& engine)
      : engine_(engine), gigaflop_(gate.gigaflop) {
    Series series;
    for (int t = 0; t < gate.context; ++t) {
      series.values.push_back(100 + std::sin(0.26f * static_cast<float>(t)));
    }
    batch_.push_back(std::move(series));
    options_.horizon = gate.horizon;
    options_.num_samples = gate.samples;
  }
  double seconds() {
    const auto start = std::chrono::steady_clock::now();
    engine_.forecast_into(batch_, options_, out_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  double peak_seconds() const { return gigaflop_ / fma_peak(best_isa()); }

 private:
  const Engine& engine_;
  double gigaflop_;
  std::vector<Series> batch_;
  ForecastOptions options_;
  std::vector<Forecast> out_;
};

// The best of each, taken in turns.
template <typename Work>
double share_of(Work& work, double handicap) {
  double ours = INFINITY, peak = INFINITY;
  for (int round = 0; round < kRounds; ++round) {
    ours = std::min(ours, work.seconds());
    peak = std::min(peak, work.peak_seconds());
  }
  return peak / (ours * handicap);
}

// Whether the usual share is reached.
template <typename Work>
bool passes(const char* name, const Usual& usual, Work work, double handicap) {
  const double at_least = kTolerated * usual_share(usual);
  const int attempts = handicap > 1 ? kSelfCheckAttempts : kAttempts;
  double share = 0;
  for (int attempt = 0; attempt < attempts && share < at_least; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    share = std::max(share, share_of(work, handicap));
  }
  fmt::print("{:<16} {:>7.0f}% {:>8.0f}%   {}\n", name, 100 * share, 100 * at_least,
             share >= at_least ? "ok" : "TOO SLOW");
  return share >= at_least;
}

// How many shares are not reached.
int run(const std::string& model, double handicap) {
  if (best_isa() == Isa::reference) {
    fail(ErrorCode::unsupported, "this CPU has no vector kernels, so there is nothing to measure");
  }
  ThreadPool pool(kThreads);
  int failed = 0;
  fmt::print("{:<16} {:>8} {:>9}   ({})\n", "", "share", "at least",
             wide_avx512() ? "avx512, full width" : name_of(best_isa()));
  const auto enough = [&] { return failed > 0 && handicap > 1; };  // it has been shown
  for (const ProductGate& gate : kProducts) {
    if (enough()) break;
    if (!passes(gate.name, gate.usual, Products(gate, pool), handicap)) ++failed;
  }
  const Engine engine = Engine::load(model, {.threads = kThreads});
  for (const ForecastGate& gate : kForecasts) {
    if (enough()) break;
    if (!passes(gate.name, gate.usual, Forecasts(gate, engine), handicap)) ++failed;
  }
  return failed;
}

}  // namespace
}  // namespace toto::bench

int main(int argc, char** argv) {
  return toto::bench::gate_main(argc, argv, "speed_gate", toto::bench::run,
                                toto::bench::noticed_handicap);
}
