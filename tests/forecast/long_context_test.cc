// Long contexts and many paths, counted byte by byte: the cache grows linearly with the context,
// and paths share the prefix they fork from.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "forecast/group_memory.h"
#include "forecast/weight_loading.h"
#include "sanitized.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;
using testing::walk;

constexpr int kThreads = 2;

class LongContextTest : public ::testing::Test {
 protected:
  // The memory of a forecast of one series: all of it comes from one arena.
  GroupMemory memory_of(int context, const ForecastOptions& options) const {
    const Series series = walk(1, context);
    SeriesPlan plan;
    plan.series = &series;
    plan.context = context_shape(series, context, facts_);
    plan.num_tokens = plan.token_room = plan.context.num_patches;
    const PathPlan paths(options, facts_);
    std::span<SeriesPlan> rest(&plan, 1);
    const SeriesGroup group = take_group(rest, 0);
    Arena arena;
    arena.start_measuring();
    return carve_memory(arena, group, paths, *network_, kThreads);
  }
  std::size_t bytes_of(int context, const ForecastOptions& options) const {
    return memory_of(context, options).bytes;
  }
  std::size_t kv_bytes(int positions) const {
    return sizeof(float) * network_->kv_layout().floats(round_up_positions(positions));
  }

  TemporaryFolder folder_;
  std::string path_ = made_model(folder_);
  ThreadPool pool_{kThreads};
  Checkpoint checkpoint_ = Checkpoint::open(path_);
  LoadedWeights weights_ = load_weights(checkpoint_, {}, pool_);
  const ModelFacts& facts_ = checkpoint_.architecture().facts();
  std::unique_ptr<Network> network_ = checkpoint_.architecture().network(
      *weights_.weights, DType::f32, kernels_for(best_isa()), pool_);
};

ForecastOptions one_patch() {
  ForecastOptions options;
  options.horizon = 8;
  return options;
}

ForecastOptions paths_ahead(int num_samples) {
  ForecastOptions options;
  options.horizon = 336;
  options.num_samples = num_samples;
  return options;
}

TEST_F(LongContextTest, MemoryGrowsWithTheContextAndNotWithItsSquare) {
  // Per patch: keys and values, points with masks, an id, rotary factors, and a score per thread.
  const std::size_t of_patch = kv_bytes(1024) / 1024 + 5U * facts_.patch + sizeof(std::int64_t) +
                               sizeof(float) * (network_->shape().position_floats + kThreads);
  for (const int context : {4096, 8192, 16'384}) {
    const std::size_t growth = bytes_of(2 * context, one_patch()) - bytes_of(context, one_patch());
    const std::size_t expected = of_patch * static_cast<std::size_t>(context / facts_.patch);
    EXPECT_NEAR(static_cast<double>(growth), static_cast<double>(expected), 2048) << context;
  }
  EXPECT_LT(bytes_of(32'768, one_patch()), 8 * bytes_of(4096, one_patch()));
}

TEST_F(LongContextTest, PathsShareThePrefixAndDecodeAsOneBatch) {
  EXPECT_EQ(memory_of(4096, paths_ahead(256)).max_lane_rows, 256);
  const auto cost_of_paths = [&](int context) {
    return bytes_of(context, paths_ahead(256)) - bytes_of(context, paths_ahead(1));
  };
  // For any prefix, a path costs its own keys and values, its own steps, and a row of every buffer.
  const std::size_t tail = kv_bytes(336 / facts_.patch);
  EXPECT_LT(cost_of_paths(4096), 255 * (tail + 8192));
  EXPECT_LT(cost_of_paths(4096), 255 * kv_bytes(4096 / facts_.patch) / 4);
  EXPECT_NEAR(static_cast<double>(cost_of_paths(32'768)), static_cast<double>(cost_of_paths(4096)),
              2048);
}

double peak_megabytes() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  double kilobytes = -1;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmHWM: %lf", &kilobytes) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return kilobytes / 1024;
}

// The counted memory is what the process really uses.
TEST_F(LongContextTest, TheProcessUsesTheCountedMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  struct Case {
    int context;
    ForecastOptions options;
  };
  for (Case& wanted : std::array{Case{4096, one_patch()}, Case{32'768, one_patch()},
                                 Case{4096, paths_ahead(256)}}) {
    wanted.options.max_context = wanted.context;
    const double counted =
        static_cast<double>(bytes_of(wanted.context, wanted.options)) / (1 << 20);
    const pid_t child = fork();
    if (child == 0) {
      const Engine engine = Engine::load(path_, {.threads = kThreads});
      const Series series = walk(1, wanted.context);
      const double before = peak_megabytes();
      const Forecast forecast = engine.forecast(series, wanted.options);
      const double taken = peak_megabytes() - before;
      constexpr double kSlack = 4;  // stacks of threads, the answer, rounding to large pages
      const bool good = taken < 1.1 * counted + kSlack && forecast.context_length == wanted.context;
      if (!good) std::fprintf(stderr, "counted %.1f MB, taken %.1f MB\n", counted, taken);
      _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << wanted.context;
  }
}

}  // namespace
}  // namespace toto
