// Memory: a forecast of a known shape allocates nothing, any allocation may fail, and loading has
// bounded memory.
#include "allocation_hook.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "sanitized.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::allocations;
using testing::fail_at;
using testing::fail_each_allocation;
using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;
using testing::walk;

TEST(Allocation, ARepeatedForecastAllocatesNothing) {
  const TemporaryFolder folder;
  const std::string model = made_model(folder);
  for (const Mode mode : {Mode::standard, Mode::reduce_overhead, Mode::max_autotune}) {
    for (const DType dtype : {DType::f32, DType::int8}) {
      const Engine engine = Engine::load(model, {.mode = mode, .dtype = dtype, .threads = 2});
      std::vector<Series> batch = {walk(1, 100, 1, "a name longer than any small string"),
                                   walk(2, 37, 3), walk(3, 1000)};
      ForecastOptions exact, sampled, joined, mean;
      exact.horizon = 8;
      sampled.horizon = 30;
      sampled.num_samples = 40;
      sampled.keep_samples = true;
      joined.horizon = 30;
      joined.num_paths = 100;  // several passes of lanes
      joined.point = parse_point("trimmed_mean_0.125");
      mean.horizon = 30;
      mean.point = parse_point("trimmed_mean_0.125");  // a name longer than any small string
      mean.decode = Decode::mean;
      for (const ForecastOptions& options : {exact, sampled, joined, mean}) {
        std::vector<Forecast> out;
        engine.forecast_into(batch, options, out);
        const std::vector<float> expected = out[1].mean;
        for (Series& series : batch) series.values[0] += 1;  // other numbers, the same shapes
        const long before = allocations.load();
        engine.forecast_into(batch, options, out);
        EXPECT_EQ(allocations.load() - before, 0);
        EXPECT_NE(out[1].mean, expected);
      }
    }
  }
}

TEST(Allocation, ARepeatedForecastOfQuantilesAllocatesNothing) {
  const std::string model = TOTO_SOURCE_DIR "/tests/golden/toto2_three_variates";
  for (const Mode mode : {Mode::standard, Mode::reduce_overhead, Mode::max_autotune}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const Engine engine = Engine::load(model, {.mode = mode, .dtype = dtype, .threads = 2});
      std::vector<Series> batch = {walk(1, 100), walk(2, 37, 3), walk(3, 1000, 2)};
      for (std::size_t t = 10; t < 40; ++t) batch[0].values[t] = NAN;
      batch[2].num_exogenous = 1;
      batch[2].future_exogenous.assign(50, 3.0f);
      for (const int block : {0, 16}) {
        ForecastOptions options;
        options.horizon = 50;
        options.block = block;
        std::vector<Forecast> out;
        engine.forecast_into(batch, options, out);
        const std::vector<float> expected = out[1].mean;
        for (Series& series : batch) series.values[0] += 1;  // other numbers, the same shapes
        const long before = allocations.load();
        engine.forecast_into(batch, options, out);
        EXPECT_EQ(allocations.load() - before, 0);
        EXPECT_NE(out[1].mean, expected);
      }
    }
  }
}

TEST(Allocation, AnyAllocationMayFailWhileLoading) {
  const TemporaryFolder folder;
  Toto1Config config = small_config();
  config.num_layers = 1;
  config.spacewise_every_n_layers = -1;
  const std::string model = made_model(folder, config);
  for (const Mode mode : {Mode::standard, Mode::reference}) {
    EXPECT_GT(fail_each_allocation([&] { Engine::load(model, {.mode = mode, .threads = 1}); }), 50);
  }
}

TEST(Allocation, AnyAllocationMayFailWhileKeepingAndMappingWeights) {
  const TemporaryFolder folder;
  Toto1Config config = small_config();
  config.num_layers = 1;
  config.spacewise_every_n_layers = -1;
  const std::string model = made_model(folder, config);
  EngineOptions options{.threads = 1};
  options.cache.folder = folder / "cache";
  options.cache.min_model_bytes = 0;
  const Series series = walk(1, 40);
  const std::vector<float> expected = Engine::load(model).forecast(series).mean;
  const auto num_files = [&] {
    std::error_code none;
    const std::filesystem::directory_iterator files(folder / "cache/weights", none);
    return none ? 0 : std::distance(files, {});
  };
  for (const bool warm : {false, true}) {
    EXPECT_GT(fail_each_allocation(
                  [&] {
                    const long n = fail_at.exchange(0);
                    if (!warm) std::filesystem::remove_all(folder / "cache");
                    fail_at = n;
                    Engine::load(model, options);
                  },
                  [&] { EXPECT_LE(num_files(), 1) << "nothing unfinished is left"; }),
              50);
    EXPECT_EQ(num_files(), 1);
    EXPECT_EQ(Engine::load(model, options).forecast(series).mean, expected);
  }
}

TEST(Allocation, AnyAllocationMayFailWhileForecasting) {
  const TemporaryFolder folder;
  const std::string model = made_model(folder);
  const Series series = walk(1, 40, 2);
  ForecastOptions options;
  options.horizon = 20;
  options.num_samples = 3;
  const std::vector<float> expected = Engine::load(model).forecast(series, options).mean;
  for (const Mode mode : {Mode::standard, Mode::reference}) {
    EXPECT_GT(fail_each_allocation([&] {
                const long n = fail_at.exchange(0);  // loading has its own test
                const Engine engine = Engine::load(model, {.mode = mode, .threads = 1});
                fail_at = n;
                engine.forecast(series, options);
              }),
              5);
  }
  // An engine that ran out of memory once still works.
  const Engine engine = Engine::load(model);
  fail_at = 1;
  EXPECT_THROW(engine.forecast(series, options), Error);
  fail_at = 0;
  EXPECT_EQ(engine.forecast(series, options).mean, expected);
}

double status_megabytes(const char* field) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field, 0) == 0)
      return std::stod(line.substr(std::string(field).size() + 1)) / 1024;
  }
  return -1;
}

// Peak and lasting memory of loading a 60 MB file, measured in a separate process: without a cache,
// while the packed weights are written, and mapped.
TEST(Allocation, LoadingHasBoundedMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  const TemporaryFolder folder;
  Toto1Config config = base_config();
  config.embed_dim = 384;
  config.num_heads = 6;
  config.num_layers = 4;
  config.spacewise_every_n_layers = 4;
  config.mlp_hidden_dim = 1536;
  enum class Start { uncached, cold, warm };
  const std::string tiny = made_model(folder);
  for (const io::TensorType type : {io::TensorType::f32, io::TensorType::f16}) {
    const std::string model = folder / std::string(io::name_of(type));
    make_model(config, 1, type, model);
    const double file =
        static_cast<double>(std::filesystem::file_size(model + "/model.safetensors")) / (1 << 20);
    for (const Start start : {Start::uncached, Start::cold, Start::warm}) {
      EngineOptions options{.threads = 1};
      if (start != Start::uncached) options.cache.folder = folder / "cache";
      const pid_t child = fork();
      if (child == 0) {
        EngineOptions small = options;
        small.cache.min_model_bytes = 0;
        Engine::load(tiny, small);  // loads pages of code, which are not measured
        const double before = status_megabytes("VmRSS:");
        const Engine engine = Engine::load(model, options);
        const double peak = status_megabytes("VmHWM:") - before,
                     after = status_megabytes("VmRSS:") - before;
        const double kept = static_cast<double>(engine.model().weight_bytes) / (1 << 20);
        const bool good =
            after < 1.2 * kept && peak < (start == Start::warm ? 1.15 * kept : 2.1 * file);
        if (!good)
          std::fprintf(stderr, "file %.1f MB, peak %.1f, after %.1f, kept %.1f\n", file, peak,
                       after, kept);
        _exit(good ? 0 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(WEXITSTATUS(status), 0) << io::name_of(type) << ", " << static_cast<int>(start);
    }
  }
}

TEST(Allocation, AnyAllocationMayFailInASession) {
  const TemporaryFolder folder;
  const Engine engine = Engine::load(made_model(folder), {.threads = 1});
  const Series whole = walk(1, 80, 2);
  std::vector<float> more;
  for (int v = 0; v < 2; ++v) {
    for (int t = 60; t < 80; ++t) more.push_back(whole.values[v * 80 + t]);
  }
  Series begun = whole;
  begun.values.clear();
  for (int v = 0; v < 2; ++v) {
    for (int t = 0; t < 60; ++t) begun.values.push_back(whole.values[v * 80 + t]);
  }
  const ForecastOptions options;
  const std::vector<float> expected = engine.forecast(whole, options).mean;
  // The session takes over its history; the copy made by the test does not count.
  const auto copy_of_history = [&begun] {
    const long due = fail_at.exchange(0);
    Series copy = begun;
    fail_at = due;
    return copy;
  };
  EXPECT_GT(fail_each_allocation([&] {
              Session session = engine.open(copy_of_history());
              session.forecast(options);
              session.append(more);
              session.forecast(options);
            }),
            20);
  // A session continues after every failure as if the failed call had not happened.
  Session session = engine.open(begun);
  session.forecast(options);
  fail_each_allocation([&] {
    if (session.series().length() == 60) session.append(more);
    EXPECT_EQ(session.forecast(options).mean, expected);
  });
  EXPECT_EQ(session.series().values, whole.values);
}

}  // namespace
}  // namespace toto
