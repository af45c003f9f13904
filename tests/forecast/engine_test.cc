// The public engine: the same bits for any threads, batch, instruction set and run; agreement of
// the two implementations; error messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "special_values.h"
#include "test_model.h"
#include "trace_values.h"

namespace toto {
namespace {

using testing::error_of;
using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;
using testing::walk;

void expect_same(const Forecast& a, const Forecast& b, const std::string& what) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float u, float v) {
      return std::bit_cast<std::uint32_t>(u) == std::bit_cast<std::uint32_t>(v);
    });
  };
  EXPECT_EQ(a.id, b.id) << what;
  EXPECT_TRUE(same(a.mean, b.mean)) << what << ": mean";
  EXPECT_TRUE(same(a.median, b.median)) << what << ": median";
  EXPECT_TRUE(same(a.point, b.point)) << what << ": point";
  EXPECT_TRUE(same(a.quantiles, b.quantiles)) << what << ": quantiles";
  EXPECT_TRUE(same(a.samples, b.samples)) << what << ": samples";
}

// Series of different lengths and widths, including a gap and a single point.
std::vector<Series> mixed_batch() {
  std::vector<Series> batch = {walk(1, 100, 1, "a"), walk(2, 37, 3, "b"), walk(3, 8, 1, "c"),
                               walk(4, 260, 2, "d"), walk(5, 1, 1, "e")};
  batch[0].values[50] = kMissing;
  return batch;
}

ForecastOptions sampling_options() {
  ForecastOptions options;
  options.horizon = 30;  // four patches of the small model
  options.num_samples = 20;
  options.keep_samples = true;
  options.seed = 7;
  return options;
}

class EngineTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
};

TEST_F(EngineTest, SameBitsWithAnyNumberOfThreads) {
  const std::vector<Series> batch = mixed_batch();
  ForecastOptions exact;
  exact.horizon = 30;
  for (const ForecastOptions& options : {sampling_options(), exact}) {
    const auto expected = Engine::load(model_, {.threads = 1}).forecast(batch, options);
    for (const int threads : {2, 3}) {
      const auto result = Engine::load(model_, {.threads = threads}).forecast(batch, options);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        expect_same(result[i], expected[i], std::to_string(threads) + " threads");
      }
    }
  }
}

TEST_F(EngineTest, SameBitsOnEveryIsa) {
  const std::vector<Series> batch = mixed_batch();
  for (const DType dtype : {DType::f32, DType::bf16, DType::int8}) {
    const auto expected = Engine::load(model_, {.dtype = dtype, .isa = Isa::reference})
                              .forecast(batch, sampling_options());
    for (const Isa isa : all_isas()) {
      if (!isa_available(isa)) continue;
      const auto result =
          Engine::load(model_, {.dtype = dtype, .isa = isa}).forecast(batch, sampling_options());
      for (std::size_t i = 0; i < batch.size(); ++i) {
        expect_same(result[i], expected[i], fmt::format("{} {}", name_of(dtype), name_of(isa)));
      }
    }
  }
}

// Weights in fewer bits: close results, and the same bits in any batch and on any threads.
TEST_F(EngineTest, PrecisionsAreCloseAndKeepTheirBits) {
  const std::vector<Series> batch = mixed_batch();
  ForecastOptions options;
  options.horizon = 8;
  const auto exact = Engine::load(model_).forecast(batch, options);
  const auto weights = Engine::load(model_).model().weight_bytes;
  const struct {
    DType dtype;
    double bound;         // of the mean's deviation, in units of its spread over the steps
    double weight_share;  // the embedding and the biases stay float32
  } cases[] = {{DType::bf16, 0.01, 0.7}, {DType::int8, 0.02, 0.5}};
  for (const auto& [dtype, bound, share] : cases) {
    SCOPED_TRACE(name_of(dtype));
    const Engine engine = Engine::load(model_, {.dtype = dtype, .threads = 1});
    EXPECT_LT(double(engine.model().weight_bytes), share * double(weights));
    double deviation = 0, spread = 0;
    const auto result = engine.forecast(batch, options);
    const auto threaded =
        Engine::load(model_, {.dtype = dtype, .threads = 3}).forecast(batch, options);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      expect_same(threaded[i], result[i], "3 threads");
      expect_same(engine.forecast(batch[i], options), result[i], "alone");
      EXPECT_NE(result[i].mean, exact[i].mean);
      for (std::size_t j = 0; j < exact[i].mean.size(); ++j) {
        deviation += std::fabs(result[i].mean[j] - exact[i].mean[j]);
        spread += std::fabs(exact[i].mean[j] - exact[i].mean[0]);
      }
    }
    EXPECT_LT(deviation / spread, bound);
  }
}

TEST_F(EngineTest, SameBitsAloneAndInAShuffledBatch) {
  const Engine engine = Engine::load(model_);
  std::vector<Series> batch = mixed_batch();
  std::vector<Forecast> alone;
  for (const Series& series : batch) alone.push_back(engine.forecast(series, sampling_options()));
  std::vector<std::size_t> order(batch.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(3);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Series> shuffled;
    for (const std::size_t i : order) shuffled.push_back(batch[i]);
    const auto together = engine.forecast(shuffled, sampling_options());
    for (std::size_t i = 0; i < order.size(); ++i)
      expect_same(together[i], alone[order[i]], "shuffled");
  }
}

TEST_F(EngineTest, SameBitsInTwentyRuns) {
  const Engine engine = Engine::load(model_);
  const Series series = walk(9, 90, 2);
  const Forecast expected = engine.forecast(series, sampling_options());
  for (int run = 0; run < 20; ++run)
    expect_same(engine.forecast(series, sampling_options()), expected, "run");
}

// More rows than fit into one pass, and more series than fit into one group.
TEST_F(EngineTest, SameBitsWhenWorkIsCutIntoPasses) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options = sampling_options();
  options.num_samples = 300;  // two decode chunks
  options.max_context = 100000;
  std::vector<Series> batch;
  for (unsigned i = 0; i < 40; ++i) batch.push_back(walk(i, 200, 1, "s" + std::to_string(i)));
  batch.push_back(walk(99, 5000, 1, "long"));
  batch.push_back(walk(98, 1500, 3, "wide"));
  const auto together = engine.forecast(batch, options);
  for (const std::size_t i : {std::size_t{0}, std::size_t{39}, std::size_t{40}, std::size_t{41}}) {
    expect_same(engine.forecast(batch[i], options), together[i], batch[i].id);
  }
}

TEST_F(EngineTest, ThreadsMayShareAnEngine) {
  const Engine engine = Engine::load(model_);
  const std::vector<Series> batch = mixed_batch();
  std::vector<Forecast> expected;
  for (const Series& series : batch)
    expected.push_back(engine.forecast(series, sampling_options()));
  std::vector<std::thread> threads;
  std::atomic<int> different{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::size_t at = (t + i) % batch.size();
        const Forecast result = engine.forecast(batch[at], sampling_options());
        if (result.mean != expected[at].mean || result.samples != expected[at].samples) ++different;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different.load(), 0);
}

// Samples are keyed by their coordinates: more samples keep those already drawn, and a longer
// horizon continues them.
TEST_F(EngineTest, SamplesDependOnTheirCoordinatesOnly) {
  const Engine engine = Engine::load(model_);
  const Series series = walk(11, 64);
  ForecastOptions options = sampling_options();
  const Forecast twenty = engine.forecast(series, options);
  options.num_samples = 33;
  options.horizon = 41;
  const Forecast more = engine.forecast(series, options);
  for (int s = 0; s < 20; ++s) {
    for (int t = 0; t < 30; ++t) EXPECT_EQ(twenty.samples[s * 30 + t], more.samples[s * 41 + t]);
  }
  options.seed = 8;
  EXPECT_NE(engine.forecast(series, options).samples, more.samples);
}

TEST_F(EngineTest, IndependentStreamsDependOnTheId) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options = sampling_options();
  std::vector<Series> twins = {walk(1, 50, 1, "a"), walk(1, 50, 1, "b")};
  auto forecasts = engine.forecast(twins, options);
  EXPECT_EQ(forecasts[0].samples, forecasts[1].samples);
  options.independent_streams = true;
  forecasts = engine.forecast(twins, options);
  EXPECT_NE(forecasts[0].samples, forecasts[1].samples);
}

// The exact first patch is the limit of infinitely many samples.
TEST_F(EngineTest, ExactAndSampledAgree) {
  const Engine engine = Engine::load(model_);
  const Series series = walk(12, 80);
  ForecastOptions options;
  options.horizon = 8;
  const Forecast exact = engine.forecast(series, options);
  EXPECT_EQ(exact.num_samples, 0);
  options.num_samples = 100'000;
  const Forecast sampled = engine.forecast(series, options);
  for (int t = 0; t < 8; ++t) {
    const float spread = exact.quantiles[8 * 8 + t] - exact.quantiles[t];
    EXPECT_NEAR(sampled.mean[t], exact.mean[t], 0.03 * spread);
    for (int q = 0; q < 9; ++q)
      EXPECT_NEAR(sampled.quantiles[q * 8 + t], exact.quantiles[q * 8 + t], 0.03 * spread);
  }
}

TEST_F(EngineTest, QuantilesAreOrderedAndTheMedianIsOne) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options;
  options.horizon = 20;
  const Forecast forecast = engine.forecast(walk(13, 70), options);
  EXPECT_EQ(forecast.num_samples, kDefaultPaths);  // beyond the first patch
  for (int t = 0; t < 20; ++t) {
    for (int q = 1; q < 9; ++q)
      EXPECT_LE(forecast.quantiles[(q - 1) * 20 + t], forecast.quantiles[q * 20 + t]);
    EXPECT_EQ(forecast.median[t], forecast.quantiles[4 * 20 + t]);
    EXPECT_EQ(forecast.point[t], forecast.mean[t]);
  }
}

// Random configs: the optimised engine against float64.
TEST(EngineAgreement, DefaultFollowsReferenceOnRandomConfigs) {
  std::mt19937 random(17);
  const auto pick = [&random](std::vector<int> choices) {
    return choices[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(random)];
  };
  for (int round = 0; round < 25; ++round) {
    Toto1Config config;
    config.num_heads = pick({1, 2, 3, 5});
    config.embed_dim = config.num_heads * pick({2, 6, 8, 16, 20});
    config.patch_size = pick({1, 3, 8, 16});
    config.num_layers = pick({1, 2, 4, 6});
    config.mlp_hidden_dim = pick({5, 16, 33, 64});
    config.spacewise_every_n_layers = config.num_layers == 1 ? pick({-1, 1}) : pick({-1, 1, 2});
    config.spacewise_first = pick({0, 1}) == 1;
    config.scaler = static_cast<Toto1Scaler>(pick({0, 1, 2}));
    config.head = static_cast<Toto1Head>(pick({0, 1}));
    config.num_components = config.head == Toto1Head::student_t ? 1 : pick({1, 2, 7, 24});
    const TemporaryFolder folder;
    const std::string model = made_model(folder, config, 100 + round);
    Series series = walk(round, pick({1, 5, 40, 90}), pick({1, 2, 4}));
    series.group_ids.resize(series.num_variates);
    for (auto& id : series.group_ids) id = pick({0, 0, 1});
    const int horizon = pick({1, 7, 30});
    const Trace expected = Engine::load(model, {.mode = Mode::reference, .dtype = DType::f64})
                               .trace(series, {.horizon = horizon});
    const Trace result = Engine::load(model).trace(series, {.horizon = horizon});
    const Trace plain =
        Engine::load(model, {.mode = Mode::reference}).trace(series, {.horizon = horizon});
    const auto compare = [&](const std::vector<double>& a, const std::vector<double>& b,
                             const char* what) {
      ASSERT_EQ(a.size(), b.size());
      double error = 0, size = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        error += std::fabs(a[i] - b[i]);
        size += std::fabs(b[i]);
      }
      EXPECT_LE(error, 3e-6 * size) << what << " in round " << round;
    };
    compare(values_of(result, "component_loc"), values_of(expected, "component_loc"),
            "component_loc");
    if (config.head == Toto1Head::mixture_of_student_t) {
      compare(values_of(result, "logits"), values_of(expected, "logits"), "logits");
    }
    compare(values_of(result, "df"), values_of(expected, "df"), "df");
    compare(values_of(result, "mean"), values_of(expected, "mean"), "mean");
    compare(values_of(plain, "mean"), values_of(expected, "mean"), "mean of reference f32");
  }
}

TEST_F(EngineTest, KnownFutureIsReportedAndUsed) {
  const Engine engine = Engine::load(model_);
  Series series = walk(21, 60, 3);
  series.num_exogenous = 1;
  ForecastOptions options;
  options.horizon = 20;
  const Forecast unknown = engine.forecast(series, options);
  for (int t = 0; t < 20; ++t) series.future_exogenous.push_back(1000.0f + static_cast<float>(t));
  const Forecast known = engine.forecast(series, options);
  for (int t = 0; t < 20; ++t) {
    EXPECT_EQ(known.mean[2 * 20 + t], 1000.0f + static_cast<float>(t));
    EXPECT_EQ(known.quantiles[(4 * 3 + 2) * 20 + t], 1000.0f + static_cast<float>(t));
  }
  // Inside the first patch nothing is fed back yet; beyond it the other variates see the change.
  EXPECT_EQ(std::vector<float>(known.mean.begin(), known.mean.begin() + 8),
            std::vector<float>(unknown.mean.begin(), unknown.mean.begin() + 8));
  EXPECT_NE(known.mean[15], unknown.mean[15]);
}

TEST_F(EngineTest, MissingValues) {
  const Engine engine = Engine::load(model_);
  const Series whole = walk(22, 60);
  Series gap = whole, filled = whole, line = whole, masked = whole;
  for (const int t : {30, 31, 32}) {
    gap.values[t] = kMissing;
    filled.values[t] = whole.values[29];
    line.values[t] = static_cast<float>(
        whole.values[29] + (t - 29) / 4.0 * (double(whole.values[33]) - whole.values[29]));
    masked.values[t] = 0;
  }
  masked.mask.assign(60, 1);
  for (const int t : {30, 31, 32}) masked.mask[t] = 0;
  ForecastOptions options;
  options.horizon = 8;
  const auto mean = [&](const Series& series, Missing missing) {
    options.missing = missing;
    return engine.forecast(series, options).mean;
  };
  EXPECT_EQ(mean(gap, Missing::ffill), mean(filled, Missing::ffill));
  EXPECT_EQ(mean(gap, Missing::linear), mean(line, Missing::ffill));
  EXPECT_EQ(mean(gap, Missing::mask), mean(masked, Missing::ffill));
  EXPECT_NE(mean(gap, Missing::mask), mean(gap, Missing::ffill));

  Series leading = whole;
  leading.values.insert(leading.values.begin(), 5, kMissing);
  EXPECT_EQ(mean(leading, Missing::ffill), mean(whole, Missing::ffill));
  // A gap at the start of the context is filled from before it.
  options.max_context = 28;  // begins inside the gap
  const std::vector<float> cut = mean(gap, Missing::ffill);
  EXPECT_EQ(cut, mean(filled, Missing::ffill));
}

TEST_F(EngineTest, ContextIsTheLatestPoints) {
  const Engine engine = Engine::load(model_);
  const Series whole = walk(23, 100);
  Series last = whole;
  last.values.erase(last.values.begin(), last.values.begin() + 60);
  ForecastOptions options;
  options.max_context = 40;
  const Forecast cut = engine.forecast(whole, options);
  EXPECT_EQ(cut.context_length, 40);
  options.max_context = 4096;
  expect_same(cut, engine.forecast(last, options), "context");
}

TEST_F(EngineTest, ExtremeNumbers) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options;
  options.horizon = 20;
  const auto series_of = [](float value, int length) {
    Series series;
    series.id = "edge";
    series.values.assign(length, value);
    return series;
  };
  for (const float value : {0.0f, 1.0f, -5e-40f, 1e30f, -1e30f, 3.4e38f}) {
    for (const int length : {1, 7, 8, 50}) {
      const Forecast forecast = engine.forecast(series_of(value, length), options);
      for (const float x : forecast.mean) EXPECT_FALSE(std::isnan(x)) << value << " x " << length;
    }
  }
  Series swings = series_of(std::numeric_limits<float>::max(), 40);
  for (std::size_t t = 0; t < swings.values.size(); t += 2)
    swings.values[t] = std::numeric_limits<float>::lowest();
  const Forecast forecast = engine.forecast(swings, options);
  EXPECT_FALSE(std::isnan(forecast.mean[0]));
}

TEST_F(EngineTest, ErrorsNameTheProblem) {
  const Engine engine = Engine::load(model_);
  const Series good = walk(1, 20);
  const auto refusal = [&](const Series& series, const ForecastOptions& options) {
    ErrorCode code = ErrorCode::internal;
    const std::string sentence = error_of([&] { engine.forecast(series, options); }, &code);
    EXPECT_EQ(code, ErrorCode::invalid_argument) << sentence;
    return sentence;
  };
  for (const int horizon : {0, -1, 1'000'000'000}) {
    EXPECT_NE(refusal(good, {.horizon = horizon}).find(std::to_string(horizon)), std::string::npos);
  }
  for (const double level : {0.0, 1.0, 1.5, -0.1, std::nan("")}) {
    EXPECT_NE(refusal(good, {.quantiles = {0.5, level}}).find("quantile"), std::string::npos);
  }
  EXPECT_NE(refusal(good, {.num_samples = 1'000'000'000}).find("samples"), std::string::npos);
  EXPECT_NE(refusal(good, {.max_context = 0}).find("context"), std::string::npos);
  Series series = good;
  series.values.clear();
  EXPECT_NE(refusal(series, {}).find("empty"), std::string::npos);
  series.values.assign(5, kMissing);
  EXPECT_NE(refusal(series, {}).find("no value"), std::string::npos);
  EXPECT_EQ(refusal(series, {}).rfind("series \"walk\"", 0), 0U);
  series.id.clear();
  EXPECT_EQ(refusal(series, {}).rfind("the series", 0), 0U);
  const std::vector<Series> batch = {good, good, series};  // its place, counted from 0
  EXPECT_EQ(error_of([&] { engine.forecast(batch, {}); }).rfind("series 2: ", 0), 0U);
  series = good;
  series.values[3] = std::numeric_limits<float>::infinity();
  EXPECT_NE(refusal(series, {}).find("infinite"), std::string::npos);
  series = good;
  series.num_variates = 3;
  EXPECT_NE(refusal(series, {}).find("multiple"), std::string::npos);
  series = good;
  series.mask.assign(3, 1);
  EXPECT_NE(refusal(series, {}).find("mask"), std::string::npos);
  series = walk(1, 20, 2);
  series.num_exogenous = 2;
  EXPECT_NE(refusal(series, {}).find("exogenous"), std::string::npos);
  series.num_exogenous = 1;
  series.future_exogenous.assign(3, 1);
  EXPECT_NE(refusal(series, {.horizon = 5}).find("known future"), std::string::npos);
  series = good;
  series.group_ids.assign(20, 0);
  series.group_ids[6] = 1;  // 20 points, patch 8: a patch ends at 4, 12, 20
  EXPECT_NE(refusal(series, {}).find("group id"), std::string::npos);
}

// A forecast that cannot fit is refused before memory is allocated.
TEST_F(EngineTest, RefusesAForecastLargerThanMemory) {
  ForecastOptions options;
  options.horizon = kMaxHorizon;
  options.num_samples = kMaxSamples;
  for (const Mode mode : {Mode::standard, Mode::reference}) {
    const Engine engine = Engine::load(model_, {.mode = mode});
    ErrorCode code = ErrorCode::internal;
    const std::string sentence = error_of([&] { engine.forecast(walk(1, 20), options); }, &code);
    EXPECT_EQ(code, ErrorCode::out_of_memory) << sentence;
    EXPECT_NE(sentence.find("MB are free"), std::string::npos) << sentence;
  }
}

TEST_F(EngineTest, RefusesAnAnswerLargerThanMemory) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options;
  options.horizon = kMaxHorizon;
  options.decode = Decode::mean;
  options.quantiles.assign(1000, 0.5);
  for (std::size_t q = 0; q < options.quantiles.size(); ++q)
    options.quantiles[q] = 0.1 + 1e-4 * double(q);
  const std::vector<Series> batch(2000, walk(1, 20));  // 800 GB of quantiles
  ErrorCode code = ErrorCode::internal;
  const std::string sentence = error_of([&] { engine.forecast(batch, options); }, &code);
  EXPECT_EQ(code, ErrorCode::out_of_memory) << sentence;
  EXPECT_NE(sentence.find("answer needs"), std::string::npos) << sentence;
}

// A small file may need a large folded head: 29 GB for a file of 150 MB.
TEST(EngineLoad, RefusesAFoldedHeadLargerThanMemory) {
  const TemporaryFolder folder;
  if (available_memory() > std::uint64_t{28} << 30) GTEST_SKIP() << "this machine has the memory";
  Toto1Config config = small_config();
  config.embed_dim = 24;
  config.num_heads = 1;
  config.mlp_hidden_dim = 2;
  config.num_layers = 1;
  config.spacewise_every_n_layers = -1;
  config.patch_size = 65536;
  config.num_components = 1024;
  const std::string model = made_model(folder, config);
  ErrorCode code = ErrorCode::internal;
  const std::string sentence = error_of([&] { Engine::load(model); }, &code);
  EXPECT_EQ(code, ErrorCode::out_of_memory) << sentence;
  EXPECT_NE(sentence.find("MB are free"), std::string::npos) << sentence;
}

TEST_F(EngineTest, ClampsNumbersToFloat32) {
  Series series = walk(1, 64);
  for (std::size_t i = 0; i < series.values.size(); ++i)
    series.values[i] = (i % 2 == 0 ? 1.0F : -1.0F) * std::numeric_limits<float>::max();
  ForecastOptions options;
  options.horizon = 40;
  options.quantiles = {1e-300, 0.1, 0.9, 1 - 1e-16};
  for (const Mode mode : {Mode::standard, Mode::reference}) {
    const Forecast forecast = Engine::load(model_, {.mode = mode}).forecast(series, options);
    for (const auto* values : {&forecast.mean, &forecast.median, &forecast.quantiles}) {
      for (const float value : *values) ASSERT_TRUE(std::isfinite(value));
    }
    EXPECT_EQ(forecast.quantiles[0], -std::numeric_limits<float>::max());
  }
}

TEST_F(EngineTest, CancelledBetweenSteps) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options = sampling_options();
  const Forecast expected = engine.forecast(walk(1, 50), options);
  int asked = 0;
  ForecastOptions cancelling = options;
  cancelling.cancelled = [&asked] { return ++asked > 2; };
  ErrorCode code = ErrorCode::internal;
  error_of([&] { engine.forecast(walk(1, 50), cancelling); }, &code);
  EXPECT_EQ(code, ErrorCode::cancelled);
  expect_same(engine.forecast(walk(1, 50), options), expected, "after a cancelled call");
}

// Also in the middle of a pass: cancelling does not wait for a wide series in reference mode.
TEST_F(EngineTest, ReferenceModeIsCancelledWithinAPass) {
  const Engine engine = Engine::load(model_, {.mode = Mode::reference});
  const Series wide = walk(1, 400, 8);
  ForecastOptions options{.horizon = 4};
  const Forecast expected = engine.forecast(wide, options);
  int asked = 0;
  options.cancelled = [&asked] { return ++asked < 0; };
  expect_same(engine.forecast(wide, options), expected, "asked all the time");
  EXPECT_GT(asked, 100);
  for (const int last : {1, 10, 50, asked - 1}) {
    int count = 0;
    options.cancelled = [&count, last] { return ++count >= last; };
    ErrorCode code = ErrorCode::internal;
    error_of([&] { engine.forecast(wide, options); }, &code);
    EXPECT_EQ(code, ErrorCode::cancelled);
    EXPECT_EQ(count, last);
  }
}

TEST_F(EngineTest, ProgressCountsSeries) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options;
  std::vector<int> seen;
  options.progress = [&seen](int done, int total) {
    EXPECT_EQ(total, 5);
    seen.push_back(done);
  };
  engine.forecast(mixed_batch(), options);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), 5);
}

TEST_F(EngineTest, ModesAndPrecisions) {
  EXPECT_NE(error_of([&] { Engine::load(model_, {.dtype = DType::f64}); }).find("f64"),
            std::string::npos);
  for (const DType dtype : {DType::bf16, DType::int8}) {
    const std::string sentence =
        error_of([&] { Engine::load(model_, {.mode = Mode::reference, .dtype = dtype}); });
    EXPECT_NE(sentence.find(name_of(dtype)), std::string::npos) << sentence;
  }
  EXPECT_NE(
      error_of([&] { Engine::load(model_, {.use_kv_cache = false}); }).find("--mode reference"),
      std::string::npos);
  EXPECT_NE(error_of([&] { Engine::load(model_, {.threads = 1000}); }).find("threads"),
            std::string::npos);
  const Engine engine = Engine::load(model_);
  EXPECT_EQ(engine.options().isa, best_isa());
  EXPECT_EQ(engine.options().threads, usable_cores());
  EXPECT_EQ(engine.kv_cache_name(), "StaticKVCache");
  EXPECT_FALSE(engine.model().trained);
  EXPECT_EQ(engine.model().weights_sha256.size(), 64u);
  EXPECT_EQ(engine.replans(), 0);
  EXPECT_GT(engine.timings().load, 0);
}

TEST_F(EngineTest, MeanDecodingFollowsOnePath) {
  const Engine engine = Engine::load(model_);
  ForecastOptions options;
  options.horizon = 30;
  options.decode = Decode::mean;
  const Series series = walk(31, 64);
  const Forecast forecast = engine.forecast(series, options);
  EXPECT_EQ(forecast.num_samples, 0);
  const Trace trace = engine.trace(series, {.horizon = 30});
  for (int t = 0; t < 30; ++t)
    EXPECT_EQ(forecast.mean[t], static_cast<float>(values_of(trace, "mean")[t]));
  options.num_samples = 5;
  EXPECT_NE(error_of([&] { engine.forecast(series, options); }).find("decode mean"),
            std::string::npos);
}

}  // namespace
}  // namespace toto
