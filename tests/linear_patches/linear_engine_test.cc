// The linear test architecture through engine and HTTP, which do not know it.
#include "model/architecture.h"
#include "model/random_model.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::walk;

constexpr const char* kGolden = TOTO_SOURCE_DIR "/tests/linear_patches/golden/linear";

const std::string& model() {
  static const testing::TemporaryFolder folder;
  static const std::string path = [] {
    std::vector<std::string> warnings;
    const auto architecture = parse_architecture(
        R"({"linear_patches": 1, "patch_size": 4, "block_patches": 2})", "config", warnings);
    make_model(*architecture, 3, io::TensorType::f32, folder / "linear");
    return folder / "linear";
  }();
  return path;
}

TEST(LinearPatches, DescribesItself) {
  const Engine engine = Engine::load(model());
  const ModelInfo& info = engine.model();
  EXPECT_EQ(info.facts.architecture, "linear_patches");
  EXPECT_EQ(info.facts.patch, 4);
  EXPECT_EQ(info.facts.block, 8);
  EXPECT_FALSE(info.facts.can_sample);
  EXPECT_EQ(info.facts.levels.size(), 5U);
  EXPECT_EQ(info.num_parameters, 20 * 8 + 20 + 20 + 8);
  EXPECT_EQ(info.shape[0].name, "patch_size");
  EXPECT_FALSE(info.trained);
}

// One pass, two blocks, a shorter last block, and horizons that end inside a patch.
TEST(LinearPatches, FollowsItsOracleInEveryMode) {
  const Engine oracle = Engine::load(model(), {.mode = Mode::reference, .dtype = DType::f64});
  for (const Mode mode :
       {Mode::reference, Mode::standard, Mode::reduce_overhead, Mode::max_autotune}) {
    const Engine engine = Engine::load(model(), {.mode = mode, .threads = 2});
    for (const int horizon : {1, 4, 7, 8, 9, 16, 19, 25, 64}) {
      for (const int length : {1, 4, 33}) {
        const Series series = walk(horizon, length, 3);
        const ForecastOptions options{.horizon = horizon, .quantiles = {0.05, 0.1, 0.4, 0.9}};
        const Forecast expected = oracle.forecast(series, options);
        const Forecast result = engine.forecast(series, options);
        ASSERT_EQ(result.quantiles.size(), expected.quantiles.size());
        for (std::size_t i = 0; i < expected.quantiles.size(); ++i) {
          EXPECT_NEAR(result.quantiles[i], expected.quantiles[i],
                      1e-4 * (1 + std::abs(expected.quantiles[i])))
              << name_of(mode) << " " << horizon << " " << length << " at " << i;
        }
        EXPECT_EQ(result.mean, result.median) << "its mean is its median";
      }
    }
  }
}

TEST(LinearPatches, AnswersTheSameAloneAndInABatch) {
  const Engine engine = Engine::load(model());
  std::vector<Series> batch;
  for (int i = 0; i < 40; ++i) batch.push_back(walk(i, 1 + 7 * i % 90, 1 + i % 3));
  const ForecastOptions options{.horizon = 21, .num_samples = 3, .keep_samples = true};
  const std::vector<Forecast> together = engine.forecast(batch, options);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Forecast alone = engine.forecast(batch[i], options);
    EXPECT_EQ(alone.quantiles, together[i].quantiles);
    EXPECT_EQ(alone.samples, together[i].samples);
    EXPECT_EQ(alone.num_samples, 3);
  }
}

// Samples are independent draws of each step from the quantiles.
TEST(LinearPatches, DrawsSamplesOfEachStep) {
  const Engine engine = Engine::load(model());
  const Series series = walk(5, 64);
  const Forecast drawn = engine.forecast(
      series, {.horizon = 12, .quantiles = {0.3}, .num_samples = 2000, .keep_samples = true});
  for (int step = 0; step < 12; ++step) {
    int below = 0;
    for (int n = 0; n < 2000; ++n) {
      below += drawn.samples[std::size_t(n) * 12 + step] < drawn.quantiles[step] ? 1 : 0;
    }
    EXPECT_NEAR(below / 2000.0, 0.3, 0.05) << step;
  }
}

TEST(LinearPatches, SessionsAnswerLikeTheEngine) {
  const Engine engine = Engine::load(model(), {.mode = Mode::reduce_overhead});
  const Series whole = walk(8, 60);
  Series begin = whole;
  begin.values.resize(40);
  Session session = engine.open(begin);
  for (int t = 40; t < 60; ++t) {
    session.append(std::span(&whole.values[t], 1));
    const Forecast expected = engine.forecast(session.series(), {.horizon = 19});
    EXPECT_EQ(session.forecast({.horizon = 19}).quantiles, expected.quantiles) << t;
  }
  EXPECT_GT(session.stats().patches_reused, 0);
}

TEST(LinearPatches, FeedsBackKnownFutures) {
  const Engine engine = Engine::load(model());
  Series series = walk(9, 40, 2);
  series.num_exogenous = 1;
  series.future_exogenous.assign(20, 7.5F);
  const Forecast forecast = engine.forecast(series, {.horizon = 20});
  for (int step = 0; step < 20; ++step) EXPECT_EQ(forecast.mean[20 + step], 7.5F);
}

// ------------------------------------------------------------------------------------------- HTTP

class LinearServerTest : public ServerTest {
 protected:
  LinearServerTest() {
    service_options_.load = [](Mode mode) { return Engine::load(kGolden, {.mode = mode}); };
  }
};

TEST_F(LinearServerTest, AnswersForecasts) {
  start();
  const Series series = walk(1, 64);
  const Json reply =
      parsed(post("/v1/forecast", fmt::format(R"({{"series": [{{"values": {}}}], "horizon": 19}})",
                                              values_text(series.values))));
  const Forecast expected = Engine::load(kGolden).forecast(series, {.horizon = 19});
  EXPECT_EQ(floats(at(at(reply, "series").array.at(0), "mean")), expected.mean);
  EXPECT_EQ(parsed(get("/v1/status")).kind, Json::Kind::object);
}

}  // namespace
}  // namespace toto::server
