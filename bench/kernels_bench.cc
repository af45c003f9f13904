// Google Benchmark for the kernels, at the shapes of the base-size network.
//
//   kernels_bench --benchmark_filter='^(read|stack)/.*threads:2'
//
// stack/ reads all weights once, as a forward pass does; gemm/ repeats one matrix, which a large
// cache may hold. Both check first that the libraries agree. spin/ is work in registers alone: it
// shows how evenly the machine runs. Counters best_ms, median_ms and p99_ms are over
// single runs.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "gemm_bench.h"
#include "kernels/kernels.h"
#include "measure.h"
#include "model/mixture_cdf.h"
#include "peaks.h"
#include "yardsticks.h"

namespace toto::bench {
namespace {

constexpr int kEmbed = 768;
constexpr int kHeads = 12;
constexpr int kHeadDim = 64;
constexpr int kPatch = 64;
constexpr std::size_t kComponents = 24;
constexpr int kSamples = 128;
constexpr std::array kLevels = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};

Buffer<float> random_floats(std::size_t count, std::uint64_t seed) {
  Buffer<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const RandomWords words = random_words({.seed = seed, .stream = i + 1});
    values[i] = static_cast<float>(words[0] * 0x1p-31 - 1.0);
  }
  return values;
}

void rms_norm(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(0));
  const Kernels& kernels = kernels_for(Isa::automatic);
  const Buffer<float> src = random_floats(std::size_t(rows) * kEmbed, 1);
  const Buffer<float> weight = random_floats(kEmbed, 2);
  Buffer<float> dst(src.size());
  for ([[maybe_unused]] auto iteration : state) {
    for (int row = 0; row < rows; ++row) {
      kernels.rms_norm(src.data() + row * kEmbed, weight.data(), 1e-8, dst.data() + row * kEmbed,
                       kEmbed);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

void rotate(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(0));
  const Kernels& kernels = kernels_for(Isa::automatic);
  Buffer<float> values = random_floats(std::size_t(rows) * kEmbed, 1);
  // Factors of a rotation, so that repeating it keeps the values' size.
  Buffer<float> a(kHeadDim), b(kHeadDim);
  for (int d = 0; d < kHeadDim; ++d) {
    a[d] = 0.8f;
    b[d] = d % 2 == 0 ? -0.6f : 0.6f;
  }
  for ([[maybe_unused]] auto iteration : state) {
    for (int head = 0; head < rows * kHeads; ++head) {
      float* row = values.data() + std::size_t(head) * kHeadDim;
      kernels.rotate(row, a.data(), b.data(), row, kHeadDim);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

// One row's query over all heads, each with `positions` cached keys and values.
void attend(benchmark::State& state) {
  const int positions = static_cast<int>(state.range(0));
  const Kernels& kernels = kernels_for(Isa::automatic);
  const std::size_t per_head = round_up(positions, kKeyPanel) * kHeadDim;
  const Buffer<float> query = random_floats(kEmbed, 1);
  const Buffer<float> keys = random_floats(kHeads * per_head, 2);
  const Buffer<float> values = random_floats(kHeads * per_head, 3);
  Buffer<float> scores(round_up(positions + 3 * kKeyPanel, kKeyPanel)), dst(kEmbed);
  for ([[maybe_unused]] auto iteration : state) {
    for (int head = 0; head < kHeads; ++head) {
      kernels.attend(
          {.query = query.data() + head * kHeadDim,
           .prefix = {keys.data() + head * per_head, values.data() + head * per_head, positions},
           .tail = {},
           .head_dim = kHeadDim,
           .value_stride = kHeadDim,
           .dst = dst.data() + head * kHeadDim,
           .scores = scores.data()});
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

// The head's outputs for one step: weights, places and widths that differ.
struct StepParameters {
  std::array<double, kComponents> df, loc, scale, logits;
};

StepParameters step_parameters(int step) {
  StepParameters parameters;
  for (std::size_t i = 0; i < kComponents; ++i) {
    const RandomWords words =
        random_words({.seed = 7, .stream = i + 1, .step = std::uint32_t(step)});
    const auto uniform = [&](int word) { return words[word] * 0x1p-32; };
    parameters.df[i] = 2.2 + 10 * uniform(0);
    parameters.loc[i] = 2 * uniform(1) - 1;
    parameters.scale[i] = 0.1 + uniform(2);
    parameters.logits[i] = 4 * uniform(3) - 2;
  }
  return parameters;
}

StudentMixture make_mixture(const StepParameters& step, std::vector<double>& workspace) {
  workspace.resize(StudentMixture::workspace_doubles(kComponents));
  const MixtureParameters<double> parameters{step.df, step.loc, step.scale, step.logits};
  return StudentMixture(workspace, parameters, {.shift = 100, .stretch = 5});
}

// A forecast's last part for a whole patch, from the head's outputs to the numbers of the answer.
template <typename Report>
void register_patch(const char* name, const Report& report) {
  for (const int threads : thread_counts()) {
    const auto run = [=](benchmark::State& state) {
      ThreadPool pool(threads);
      std::vector<StepParameters> steps;
      steps.reserve(kPatch);
      for (int step = 0; step < kPatch; ++step) steps.push_back(step_parameters(step));
      std::vector<std::vector<double>> workspaces(threads);
      std::vector<double> sums(kPatch);
      measure(state, [&] {
        pool.run(kPatch, [&](int step, int worker) {
          sums[step] = report(make_mixture(steps[step], workspaces[worker]), step);
        });
        benchmark::DoNotOptimize(sums.data());
      });
    };
    benchmark::RegisterBenchmark(
        fmt::format("{}/steps:{}/threads:{}", name, kPatch, threads).c_str(), run)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

// Multiply-adds on all threads for about as long as a forecast of the base-size network takes. It
// touches no memory, so no program can avoid the spread of its times.
void register_spin() {
  constexpr int kPieces = 360;
  for (const int threads : thread_counts()) {
    const auto run = [=](benchmark::State& state) {
      ThreadPool pool(threads);
      measure(state, [&] { pool.run(threads * kPieces, [](int, int) { fma_peak(best_isa()); }); });
    };
    benchmark::RegisterBenchmark(fmt::format("spin/threads:{}", threads).c_str(), run)
        ->UseManualTime()
        ->Iterations(200)
        ->Unit(benchmark::kMillisecond);
  }
}

void register_small_kernels() {
  const auto add = [](const char* name, auto* run, const char* argument,
                      const std::vector<std::int64_t>& values) {
    auto* registered = benchmark::RegisterBenchmark(name, run)->ArgName(argument);
    for (const std::int64_t value : values) registered->Arg(value);
    registered->Unit(benchmark::kMicrosecond);
  };
  add("rms_norm", rms_norm, "rows", {1, 8, 512});
  add("rotate", rotate, "rows", {1, 8, 512});
  add("attend", attend, "positions", {8, 64, 512});
  register_patch("mean", [](const StudentMixture& mixture, int) { return mixture.mean(); });
  register_patch("samples:128", [](const StudentMixture& mixture, int step) {
    double sum = 0;
    for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
      sum +=
          mixture.sample(random_words({.seed = 1, .sample = sample, .step = std::uint32_t(step)}));
    }
    return sum;
  });
  register_patch("quantiles:9", [](const StudentMixture& mixture, int) {
    const MixtureCdf cdf(mixture);
    double sum = 0;
    for (const double level : kLevels) sum += cdf.quantile(level);
    return sum;
  });
}

}  // namespace
}  // namespace toto::bench

int main(int argc, char** argv) {
  try {
    toto::bench::register_gemm_benchmarks();
    toto::bench::register_small_kernels();
    toto::bench::register_spin();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::AddCustomContext("isa", std::string(name_of(toto::best_isa())));
    for (const toto::bench::YardstickFactory& yardstick : toto::bench::yardsticks()) {
      benchmark::AddCustomContext(yardstick.name, yardstick.version);
    }
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
