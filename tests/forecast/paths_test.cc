// Steps beyond the exact ones: the average of the paths' distributions. Which paths, which average,
// the same bits everywhere, and less noise than one draw of each path.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "base/threads.h"
#include "model/averaged_mixture.h"
#include "model/checkpoint.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;
using testing::walk;

constexpr int kSteps = 20;  // three patches of 8
const std::vector<double> kAsked = {0.001, 0.1, 0.25, 0.5, 0.9, 0.999};

void expect_same_bits(const Forecast& a, const Forecast& b, const std::string& what) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() &&
           (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
  };
  EXPECT_TRUE(same(a.mean, b.mean)) << what;
  EXPECT_TRUE(same(a.median, b.median)) << what;
  EXPECT_TRUE(same(a.point, b.point)) << what;
  EXPECT_TRUE(same(a.quantiles, b.quantiles)) << what;
  EXPECT_TRUE(same(a.samples, b.samples)) << what;
  EXPECT_EQ(a.num_paths, b.num_paths) << what;
  EXPECT_EQ(a.exact_steps, b.exact_steps) << what;
}

class PathsTest : public ::testing::Test {
 protected:
  static ForecastOptions options(int num_paths, std::uint64_t seed = 5) {
    return {.horizon = kSteps,
            .quantiles = kAsked,
            .num_paths = num_paths,
            .point = parse_point("trimmed_mean_10"),
            .seed = seed};
  }

  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
  Engine engine_ = Engine::load(model_);
};

TEST_F(PathsTest, AreTheSamplesOfTheSameSeed) {
  const Series series = walk(1, 80, 2);
  ForecastOptions joined = options(30), sampled = options(30);
  joined.keep_samples = sampled.keep_samples = true;
  sampled.num_samples = 30;
  const Forecast paths = engine_.forecast(series, joined);
  const Forecast samples = engine_.forecast(series, sampled);
  EXPECT_EQ(paths.samples, samples.samples);
  EXPECT_NE(paths.quantiles, samples.quantiles);
  EXPECT_EQ(paths.num_paths, 30);
  EXPECT_EQ(paths.exact_steps, 8);
  EXPECT_EQ(samples.num_paths, 0);
  EXPECT_EQ(samples.num_samples, 30);
  EXPECT_EQ(samples.exact_steps, 0);
  ForecastOptions near = options(30);
  near.horizon = 8;
  EXPECT_EQ(engine_.forecast(series, near).num_paths, 0);
  EXPECT_EQ(engine_.forecast(series, near).exact_steps, 8);
  ForecastOptions mean = options(30);
  mean.decode = Decode::mean;
  EXPECT_EQ(engine_.forecast(series, mean).num_paths, 0);
  EXPECT_EQ(engine_.forecast(series, mean).exact_steps, kSteps);
  for (const int wrong : {0, -1, kMaxSamples + 1}) {
    EXPECT_NE(error_of([&] {
                engine_.forecast(series, options(wrong));
              }).find("paths is " + std::to_string(wrong) + ", expected 1 to 1000000"),
              std::string::npos);
  }
}

TEST_F(PathsTest, HaveTheSameBitsInEveryBatchModeThreadCountAndInstructionSet) {
  // 300 paths of three variates are several passes of lanes.
  const std::vector<Series> batch = {walk(1, 100), walk(2, 37, 3), walk(3, 5)};
  for (const int num_paths : {1, 20, 300}) {
    const std::vector<Forecast> expected =
        Engine::load(model_, {.threads = 1}).forecast(batch, options(num_paths));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      expect_same_bits(engine_.forecast(batch[i], options(num_paths)), expected[i], "alone");
      Session session = engine_.open(batch[i]);
      expect_same_bits(session.forecast(options(num_paths)), expected[i], "a session");
      expect_same_bits(session.forecast(options(num_paths)), expected[i], "its second forecast");
    }
    std::vector<EngineOptions> engines = {{.threads = 2}};
    for (const Mode mode : {Mode::reduce_overhead, Mode::max_autotune}) {
      engines.push_back({.mode = mode, .threads = 2});
    }
    for (const Isa isa : all_isas()) {
      if (isa_available(isa)) engines.push_back({.isa = isa, .threads = 2});
    }
    for (const EngineOptions& wanted : engines) {
      const Engine engine = Engine::load(model_, wanted);
      for (int run = 0; run < 2; ++run) {
        const std::vector<Forecast> found = engine.forecast(batch, options(num_paths));
        for (std::size_t i = 0; i < batch.size(); ++i) {
          expect_same_bits(found[i], expected[i],
                           std::string(name_of(wanted.mode)) + std::string(name_of(wanted.isa)));
        }
      }
    }
  }
}

TEST_F(PathsTest, AgreeWithThePlainAverageOfReferenceMode) {
  const Engine reference = Engine::load(model_, {.mode = Mode::reference});
  Series series = walk(4, 60, 2);
  series.num_exogenous = 1;
  for (int i = 0; i < kSteps; ++i) series.future_exogenous.push_back(100 + float(i % 3));
  for (const char* point : {"mean", "median", "quantile_0.3", "trimmed_mean_10",
                            "lower_trimmed_mean_20", "upper_trimmed_mean_20", "mean_plus_std_1",
                            "mean_quantile_mix_0.4_0.5", "quantile_plus_std_0.2_2"}) {
    ForecastOptions asked = options(24);
    asked.point = parse_point(point);
    const Forecast ours = engine_.forecast(series, asked),
                   plain = reference.forecast(series, asked);
    for (int t = 0; t < kSteps; ++t) {
      const auto level = [&](const Forecast& forecast, std::size_t q) {
        return forecast.quantiles[q * 2 * kSteps + t];
      };
      const float spread = level(plain, 4) - level(plain, 1);
      // Rounding moves the paths themselves a little; in the tails a little more.
      EXPECT_NEAR(ours.mean[t], plain.mean[t], 2e-4 * spread) << point << " at step " << t;
      EXPECT_NEAR(ours.point[t], plain.point[t], 2e-4 * spread) << point << " at step " << t;
      for (std::size_t q = 0; q < kAsked.size(); ++q) {
        const double tail = std::min(kAsked[q], 1 - kAsked[q]);
        EXPECT_NEAR(level(ours, q), level(plain, q), (tail < 0.01 ? 2e-2 : 2e-4) * spread)
            << kAsked[q] << " at step " << t;
      }
    }
    for (int t = 0; t < kSteps; ++t) {  // the known future is itself
      EXPECT_EQ(ours.point[kSteps + t], series.future_exogenous[t]);
      EXPECT_EQ(plain.quantiles[kSteps + t], series.future_exogenous[t]);
    }
  }
}

// Many draws from every path's distribution, by the oracle: neither average has a part in it.
TEST_F(PathsTest, AreTheDistributionOfAMillionNestedDraws) {
  constexpr int kPaths = 256, kDraws = 1'000'000 / kPaths + 1, kPatch = 8;
  const Series series = walk(6, 10 * kPatch);
  ForecastOptions asked = options(kPaths, 11);
  asked.horizon = 2 * kPatch;
  asked.scale = 1;
  const Forecast forecast = engine_.forecast(series, asked);

  const Checkpoint checkpoint = Checkpoint::open(model_);
  const std::unique_ptr<Oracle> oracle = checkpoint.architecture().oracle(checkpoint, true);
  const std::vector<std::uint8_t> mask(series.values.size(), 1);
  const std::vector<std::int64_t> ids(10, 0);
  const std::unique_ptr<OraclePath> context = oracle->begin(
      {.num_variates = 1, .num_patches = 10, .values = series.values, .mask = mask, .ids = ids},
      true);
  ThreadPool pool(1);
  const auto predict = [&pool](OraclePath& path) { path.predict(1, pool, [] {}); };
  const auto draw = [](const StepDistribution& step, std::uint64_t seed, int sample, int number) {
    return step.sample(random_words({.seed = seed,
                                     .stream = 0,
                                     .variate = 0,
                                     .sample = static_cast<std::uint32_t>(sample),
                                     .step = static_cast<std::uint32_t>(number)}));
  };
  predict(*context);
  std::vector<double> memory(context->step_doubles());
  constexpr std::array kLooked = {0, 3, 7};  // steps of the second patch
  std::vector<std::vector<double>> draws(kLooked.size());
  double total[kLooked.size()] = {};
  for (int j = 0; j < kPaths; ++j) {
    const std::unique_ptr<OraclePath> path = context->fork();
    std::vector<double> values;
    for (int t = 0; t < kPatch; ++t) {
      values.push_back(static_cast<float>(draw(path->step(0, t, memory), asked.seed, j, t)));
    }
    path->append(values);
    predict(*path);
    for (std::size_t i = 0; i < kLooked.size(); ++i) {
      const StepDistribution step = path->step(0, kLooked[i], memory);
      total[i] += step.mean();
      for (int n = 0; n < kDraws; ++n) draws[i].push_back(draw(step, 99, j, 1000 + n));
    }
  }
  for (std::size_t i = 0; i < kLooked.size(); ++i) {
    const auto count = static_cast<double>(draws[i].size());
    ASSERT_GT(count, 1e6);
    const std::size_t at = kPatch + kLooked[i];
    EXPECT_NEAR(forecast.mean[at] / (total[i] / kPaths), 1, 1e-5);
    for (std::size_t q = 0; q < kAsked.size(); ++q) {
      const float level = forecast.quantiles[q * asked.horizon + at];
      const auto below = std::count_if(draws[i].begin(), draws[i].end(),
                                       [level](double value) { return value <= level; });
      const double share = static_cast<double>(below) / count, p = kAsked[q];
      // Four standard deviations of a share of independent draws.
      EXPECT_NEAR(share, p, 4 * std::sqrt(p * (1 - p) / count)) << "step " << at;
    }
  }
}

TEST_F(PathsTest, AreLessNoisyThanOneDrawOfEach) {
  const Series series = walk(7, 96);
  const auto noise = [&](bool joined) {
    double total = 0, squares = 0;
    constexpr int kSeeds = 30;
    for (int seed = 0; seed < kSeeds; ++seed) {
      ForecastOptions asked = options(64, static_cast<std::uint64_t>(seed));
      asked.num_samples = joined ? 0 : 64;
      const double value = engine_.forecast(series, asked).quantiles[kSteps + 18];  // level 0.1
      total += value;
      squares += value * value;
    }
    return std::sqrt(squares / kSeeds - total * total / kSeeds / kSeeds);
  };
  EXPECT_LT(noise(true), 0.5 * noise(false));
}

TEST_F(PathsTest, MemoryIsCounted) {
  const ModelFacts& facts = engine_.model().facts;
  EXPECT_EQ(facts.step_bytes, 8 * (4 + 5 + 8));  // five components
  const double step = static_cast<double>(facts.step_bytes);
  EXPECT_EQ(path_bytes(2, options(30), facts), 2 * 30 * (24 * 4 + 16 * step));
  ForecastOptions sampled = options(30);
  sampled.num_samples = 30;
  EXPECT_EQ(path_bytes(2, sampled, facts), 2 * 30 * 24 * 4);
  ForecastOptions near = options(30);
  near.horizon = 8;
  EXPECT_EQ(path_bytes(2, near, facts), 0);
}

}  // namespace
}  // namespace toto
