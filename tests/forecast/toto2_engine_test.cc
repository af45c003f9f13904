// Toto 2.0 through the engine: the same bits however a forecast is computed, gaps and known
// futures, and what it refuses. The goldens hold the numbers.
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::made_model;
using testing::TemporaryFolder;
using testing::walk;

// Patches of 8 steps. Three layer orders, grouped heads, normalised queries.
constexpr const char* kModels[] = {"toto2_three_variates", "toto2_gqa", "toto2_qk_norm",
                                   "toto2_variate_first"};
std::string golden(const std::string& name) { return TOTO_SOURCE_DIR "/tests/golden/" + name; }

void make_gap(Series& series, int variate, std::size_t first, std::size_t last) {
  for (std::size_t t = first; t < last; ++t) series.values[variate * series.length() + t] = NAN;
}

// Ragged, with gaps of parts of patches and of whole ones, ids and known futures with a hole.
std::vector<Series> hard_batch(int horizon) {
  std::vector<Series> batch = {walk(1, 100), walk(2, 37, 3), walk(3, 3), walk(4, 64, 2),
                               walk(5, 300, 2)};
  make_gap(batch[0], 0, 30, 61);
  make_gap(batch[1], 1, 0, 20);
  batch[1].group_ids = {4, 4, 7};
  make_gap(batch[3], 0, 60, 64);
  make_gap(batch[3], 1, 40, 64);
  batch[3].num_exogenous = 1;
  batch[3].future_exogenous = walk(6, horizon).values;
  if (horizon > 2) batch[3].future_exogenous[2] = NAN;
  make_gap(batch[4], 1, 0, 150);
  return batch;
}

bool same(const Forecast& a, const Forecast& b) {
  const auto equal = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](float p, float q) {
             return p == q || (std::isnan(p) && std::isnan(q));
           });
  };
  return equal(a.mean, b.mean) && equal(a.quantiles, b.quantiles) && equal(a.samples, b.samples);
}

TEST(Toto2Engine, GivesTheSameBitsHoweverItIsRun) {
  for (const char* name : kModels) {
    for (const int block : {0, 8, 24}) {
      const ForecastOptions options{
          .horizon = 43, .num_samples = 2, .keep_samples = true, .block = block};
      const std::vector<Series> batch = hard_batch(43);
      const std::vector<Forecast> expected =
          Engine::load(golden(name), {.threads = 1}).forecast(batch, options);
      const auto check = [&](const EngineOptions& how, const std::string& what) {
        const Engine engine = Engine::load(golden(name), how);
        const std::vector<Forecast> together = engine.forecast(batch, options);
        for (std::size_t i = 0; i < batch.size(); ++i) {
          EXPECT_TRUE(same(together[i], expected[i])) << name << " " << what << " series " << i;
          EXPECT_TRUE(same(engine.forecast(batch[i], options), expected[i]))
              << name << " " << what << " alone " << i;
        }
      };
      check({.mode = Mode::reduce_overhead, .threads = 3}, "reduce-overhead");
      check({.mode = Mode::max_autotune, .threads = 2}, "max-autotune");
      for (const Isa isa : all_isas()) {
        if (isa_available(isa)) check({.isa = isa, .threads = 2}, std::string(name_of(isa)));
      }
    }
  }
}

TEST(Toto2Engine, FollowsItsOracle) {
  const Engine oracle =
      Engine::load(golden("toto2_gqa"), {.mode = Mode::reference, .dtype = DType::f64});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Engine engine = Engine::load(golden("toto2_gqa"), {.dtype = dtype});
    const double bound = dtype == DType::f32 ? 2e-5 : dtype == DType::f16 ? 0.01 : 0.1;
    for (const int horizon : {1, 8, 9, 40}) {
      for (const Series& series : hard_batch(horizon)) {
        const ForecastOptions options{.horizon = horizon, .quantiles = {0.05, 0.1, 0.45, 0.9}};
        const Forecast expected = oracle.forecast(series, options);
        const Forecast found = engine.forecast(series, options);
        double error = 0, size = 0;
        for (std::size_t i = 0; i < expected.quantiles.size(); ++i) {
          if (std::isnan(expected.quantiles[i])) continue;  // a known value that is missing
          error += std::abs(double{found.quantiles[i]} - expected.quantiles[i]);
          size += std::abs(expected.quantiles[i]);
        }
        EXPECT_LT(error, bound * size) << name_of(dtype) << " " << horizon << " " << series.id;
        EXPECT_EQ(found.mean.front(), found.median.front()) << "its mean is its median";
      }
    }
  }
}

TEST(Toto2Engine, SessionsAnswerLikeTheEngine) {
  for (const char* name : kModels) {
    const Engine engine = Engine::load(golden(name), {.mode = Mode::reduce_overhead});
    Series whole = walk(8, 150, 2);
    make_gap(whole, 1, 20, 47);
    Series begin = whole;
    begin.values.clear();
    for (int v = 0; v < 2; ++v) {
      begin.values.insert(begin.values.end(), whole.values.begin() + v * 150,
                          whole.values.begin() + v * 150 + 120);
    }
    Session session = engine.open(begin);
    for (int t = 120; t < 150; ++t) {
      const std::vector<float> next = {whole.values[t], whole.values[150 + t]};
      session.append(next);
      for (const int block : {0, 8}) {
        const ForecastOptions options{.horizon = 19, .block = block};
        const Forecast expected = engine.forecast(session.series(), options);
        EXPECT_TRUE(same(session.forecast(options), expected)) << name << " " << t;
      }
    }
    EXPECT_GT(session.stats().patches_reused, 100);
  }
}

// Patches in front without any value are left out: neither positions nor statistics change.
TEST(Toto2Engine, IgnoresWhatIsMissingInFront) {
  const Engine engine = Engine::load(golden("toto2_three_variates"));
  const Series series = walk(9, 61, 2);
  Series padded = series;
  padded.values.clear();
  for (int v = 0; v < 2; ++v) {
    padded.values.insert(padded.values.end(), 24, NAN);
    padded.values.insert(padded.values.end(), series.values.begin() + v * 61,
                         series.values.begin() + (v + 1) * 61);
  }
  for (const int block : {0, 8}) {
    const ForecastOptions options{.horizon = 30, .block = block};
    EXPECT_TRUE(same(engine.forecast(padded, options), engine.forecast(series, options)));
  }
}

// Filled values stay marked as missing, so how they are filled matters in the last patch only.
TEST(Toto2Engine, FillsGapsForTheLastPatchOnly) {
  const Engine engine = Engine::load(golden("toto2_three_variates"));
  Series series = walk(10, 64);
  make_gap(series, 0, 13, 30);
  const auto with = [&](Missing missing) {
    return engine.forecast(series, {.horizon = 20, .missing = missing});
  };
  EXPECT_TRUE(same(with(Missing::ffill), with(Missing::mask)));
  EXPECT_TRUE(same(with(Missing::linear), with(Missing::mask)));
  make_gap(series, 0, 60, 62);
  EXPECT_FALSE(same(with(Missing::ffill), with(Missing::mask)));
  EXPECT_FALSE(same(with(Missing::ffill), with(Missing::linear)));
}

TEST(Toto2Engine, CapsForecastsAroundTheContext) {
  const Engine engine = Engine::load(golden("toto2_three_variates"));
  const Series series = walk(11, 64);
  const auto [low, high] = std::minmax_element(series.values.begin(), series.values.end());
  const double mean = std::accumulate(series.values.begin(), series.values.end(), 0.0) / 64;
  double squares = 0;
  for (const float x : series.values) squares += (x - mean) * (x - mean);
  const double reach = 0.01 * std::sqrt(squares / 63);
  const Forecast capped = engine.forecast(series, {.horizon = 16, .cap = 0.01});
  const auto [lowest, highest] =
      std::minmax_element(capped.quantiles.begin(), capped.quantiles.end());
  EXPECT_NEAR(*lowest, *low - reach, 1e-4);
  EXPECT_NEAR(*highest, *high + reach, 1e-4);
  EXPECT_FALSE(same(engine.forecast(series, {.horizon = 16}), capped)) << "1e4 does not bind";
  EXPECT_TRUE(same(engine.forecast(series, {.horizon = 16}),
                   engine.forecast(series, {.horizon = 16, .cap = 0})));
}

TEST(Toto2Engine, PassesThroughKnownValues) {
  const Engine engine = Engine::load(golden("toto2_three_variates"));
  Series series = walk(12, 64, 2);
  series.num_exogenous = 1;
  series.future_exogenous = walk(13, 20).values;
  const ForecastOptions options{.horizon = 20, .num_samples = 3, .keep_samples = true};
  const Forecast forecast = engine.forecast(series, options);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(forecast.mean[20 + step], series.future_exogenous[step]);
    EXPECT_EQ(forecast.samples[3 * 20 + 2 * 20 + step], series.future_exogenous[step]);
  }
  series.future_exogenous[3] += 50;
  EXPECT_FALSE(same(engine.forecast(series, options), forecast)) << "the future is read";
}

TEST(Toto2Engine, RefusesWhatTheModelCannotDo) {
  const Engine engine = Engine::load(golden("toto2_three_variates"));
  const TemporaryFolder folder;
  const Engine other = Engine::load(made_model(folder));
  const Series series = walk(14, 64, 2);
  const auto message = [&](const Engine& asked, const ForecastOptions& options, const Series& of) {
    ErrorCode code = ErrorCode::internal;
    const std::string text = error_of([&] { asked.forecast(of, options); }, &code);
    EXPECT_EQ(code, ErrorCode::invalid_argument) << text;
    return text;
  };
  EXPECT_NE(message(engine, {.block = 12}, series).find("multiple of the patch of 8"),
            std::string::npos);
  EXPECT_NE(message(other, {.block = 8}, series).find("always forecasts 8 steps"),
            std::string::npos);
  EXPECT_NE(message(other, {.cap = 0}, series).find("raw"), std::string::npos);
  EXPECT_NE(message(other, {.strict_quantiles = true}, series).find("strict_quantiles"),
            std::string::npos);
  EXPECT_NE(message(engine, {.quantiles = {0.05}, .strict_quantiles = true}, series)
                .find("quantile 0.05 is beyond the model's own levels, 0.1 to 0.9"),
            std::string::npos);
  EXPECT_EQ(error_of([&] {
              engine.forecast(series, {.quantiles = {0.1, 0.55, 0.9}, .strict_quantiles = true});
            }),
            "no error");
  Series ids = series;
  ids.group_ids = {0, -1};
  EXPECT_NE(message(engine, {}, ids).find("group id of variate 1 is -1"), std::string::npos);
  ids.group_ids.assign(ids.values.size(), 3);
  ids.group_ids.back() = 4;
  EXPECT_NE(message(engine, {}, ids).find("changes at step 63"), std::string::npos);
  Series known = series;
  known.num_exogenous = 1;
  known.future_exogenous.assign(64, NAN);
  EXPECT_NE(message(other, {}, known).find("known future"), std::string::npos);
  EXPECT_NE(error_of([&] {
              Engine::load(golden("toto2_three_variates"),
                           {.mode = Mode::reference, .use_kv_cache = false});
            }).find("--no-kv-cache"),
            std::string::npos);
}

}  // namespace
}  // namespace toto
