// Sessions: every forecast has the bits of a fresh one, and patches computed before are reused if
// their alignment is the same.
#include <gtest/gtest.h>

#include <cmath>

#include "special_values.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;

constexpr int kPatch = 8;  // of small_config()

// Varies so much that its automatic scale is 1 at every length: a new factor is a new context.
Series wide_walk(unsigned seed, int length, int num_variates = 1, const std::string& id = "walk") {
  Series series = testing::walk(seed, length, num_variates, id);
  for (float& value : series.values) value *= 16;
  return series;
}

// Steps [begin, end) of every variate.
std::vector<float> slice(const Series& series, std::size_t begin, std::size_t end) {
  std::vector<float> values;
  for (int v = 0; v < series.num_variates; ++v) {
    const auto first = series.values.begin() + static_cast<std::ptrdiff_t>(v * series.length());
    values.insert(values.end(), first + static_cast<std::ptrdiff_t>(begin),
                  first + static_cast<std::ptrdiff_t>(end));
  }
  return values;
}

Series beginning_of(const Series& whole, std::size_t length) {
  Series series = whole;
  series.values = slice(whole, 0, length);
  return series;
}

void expect_same(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.context_length, b.context_length);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(a.point, b.point);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.samples, b.samples);
}

// Opens with `first` points of `whole`, then appends `steps` in turn; each forecast is compared
// with that of a fresh series.
SessionStats expect_exact(const Engine& engine, const Series& whole, std::size_t first,
                          const std::vector<std::size_t>& steps, const ForecastOptions& options,
                          const SessionOptions& limits = {}) {
  Session session = engine.open(beginning_of(whole, first), limits);
  std::size_t length = first;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    if (i > 0) {
      session.append(slice(whole, length, length + steps[i - 1]));
      length += steps[i - 1];
    }
    SCOPED_TRACE(length);
    expect_same(session.forecast(options), engine.forecast(beginning_of(whole, length), options));
  }
  return session.stats();
}

class SessionTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
  Engine engine_ = Engine::load(model_);
};

TEST_F(SessionTest, ContinuesAfterWholePatches) {
  const SessionStats stats =
      expect_exact(engine_, wide_walk(1, 300), 100, {kPatch, kPatch, 3 * kPatch, 5 * kPatch}, {});
  // 13 patches (100 points), then 14, 15, 18, 23: all but the new ones are reused.
  EXPECT_EQ(stats.forecasts, 5);
  EXPECT_EQ(stats.patches_computed, 13 + 1 + 1 + 3 + 5);
  EXPECT_EQ(stats.patches_reused, 13 + 14 + 15 + 18);
  EXPECT_EQ(stats.contexts, 1);
}

TEST_F(SessionTest, ReusesEveryAlignmentForSinglePoints) {
  const SessionStats stats =
      expect_exact(engine_, wide_walk(2, 200), 64, std::vector<std::size_t>(40, 1), {.horizon = 4});
  EXPECT_EQ(stats.contexts, kPatch);
  // 64 and then 65 to 71 are eight alignments; from 72 on one patch is new each time.
  EXPECT_EQ(stats.patches_computed, 8 + 7 * 9 + 33);
  EXPECT_GT(stats.patches_reused, 300);
}

TEST_F(SessionTest, RecomputesOnlyTheLastPatchOfTheSameContext) {
  Session session = engine_.open(wide_walk(3, 80));
  const Forecast first = session.forecast();
  expect_same(session.forecast(), first);
  EXPECT_EQ(session.stats().patches_computed, 10 + 1);
  session.append({});
  expect_same(session.forecast(), first);
}

TEST_F(SessionTest, SamplesBeyondTheFirstPatchInEveryModeDtypeAndThreadCount) {
  const Series whole = wide_walk(4, 150, 3);
  for (const Mode mode : {Mode::standard, Mode::reduce_overhead, Mode::max_autotune}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::int8}) {
      for (const int threads : {1, 2}) {
        const Engine engine =
            Engine::load(model_, {.mode = mode, .dtype = dtype, .threads = threads});
        ForecastOptions options{.horizon = 30};
        options.num_samples = 20;
        options.keep_samples = true;
        const SessionStats stats = expect_exact(engine, whole, 50, {8, 1, 16, 7, 8}, options);
        EXPECT_EQ(stats.patches_computed, 7 + 1 + 8 + 2 + 3 + 1);
        options = {.horizon = 20, .decode = Decode::mean};
        expect_exact(engine, whole, 40, {8, 8, 3}, options);
      }
    }
  }
  // And the bits of two engines agree.
  Session one = Engine::load(model_, {.threads = 1}).open(beginning_of(whole, 60));
  one.forecast({.horizon = 3});
  one.append(slice(whole, 60, 76));
  expect_same(one.forecast({.horizon = 20}),
              engine_.forecast(beginning_of(whole, 76), {.horizon = 20}));
}

TEST_F(SessionTest, FillsMissingValuesAsAFreshForecast) {
  Series whole = wide_walk(5, 160, 2);
  // A variate that begins late, inner gaps, and a gap at the end that a later point closes: linear
  // filling then changes patches that were already used.
  for (const int t : {0, 1, 2, 3, 40, 41, 62, 63, 64, 65, 66, 90}) whole.values[t] = kMissing;
  for (const int t : {0, 1, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79})
    whole.values[160 + t] = kMissing;
  // 64 points, four times a patch, two single points, two patches: 8 + 4 + 13 + 13 + 2.
  constexpr int kWithoutChanges = 40;
  for (const Missing missing : {Missing::ffill, Missing::linear, Missing::mask}) {
    ForecastOptions options{.horizon = 12};
    options.missing = missing;
    const SessionStats stats = expect_exact(engine_, whole, 64, {8, 8, 8, 8, 1, 1, 16}, options);
    EXPECT_GT(stats.patches_reused, 30);
    // Linear filling up to a new point changes the patches it crosses.
    EXPECT_EQ(missing == Missing::linear, stats.patches_computed > kWithoutChanges)
        << stats.patches_computed;
  }
}

TEST_F(SessionTest, RecomputesASlidingContext) {
  ForecastOptions options{.horizon = 4};
  options.max_context = 64;
  const SessionStats stats = expect_exact(engine_, wide_walk(6, 200), 48, {8, 8, 8, 8, 1}, options);
  // 48, 56, 64 grow; from then on the window moves and every patch is scaled differently.
  EXPECT_EQ(stats.patches_computed, 6 + 1 + 1 + 8 + 8 + 8);
  EXPECT_EQ(stats.contexts, 1) << "what begins elsewhere is not kept";
}

TEST_F(SessionTest, DropsOldPointsBeyondTheLimit) {
  const Series whole = wide_walk(7, 400, 2);
  Series begun = beginning_of(whole, 90);
  begun.mask.assign(begun.values.size(), 1);
  for (std::size_t t = 0; t < 180; t += 7) begun.mask[t] = 0;
  for (int v = 0; v < 2; ++v) begun.group_ids.insert(begun.group_ids.end(), 90, v);
  Session session = engine_.open(begun, {.max_length = 100});
  std::size_t length = 90;
  for (int i = 0; i < 20; ++i, length += kPatch) {
    const Series& series = session.series();
    EXPECT_LE(series.length(), 100u);
    EXPECT_EQ(series.values, slice(whole, length - series.length(), length));
    EXPECT_EQ(series.mask.size(), series.values.size());
    EXPECT_EQ(series.group_ids.size(), series.values.size());
    EXPECT_EQ(series.group_ids.back(), 1);
    expect_same(session.forecast(), engine_.forecast(series));
    session.append(slice(whole, length, length + kPatch));
  }
  EXPECT_GT(session.stats().points_dropped, 100);
  EXPECT_GT(session.stats().patches_reused, 100) << "between two cuts";
  EXPECT_EQ(engine_.open(whole, {.max_length = 40}).series().length(), 30u);
}

TEST_F(SessionTest, MemoryStaysWithinItsLimit) {
  const Series whole = wide_walk(8, 200);
  const std::vector<std::size_t> steps(50, 1);
  const SessionStats all = expect_exact(engine_, whole, 64, steps, {.horizon = 2});
  const std::size_t one = all.bytes / kPatch;
  const SessionStats half =
      expect_exact(engine_, whole, 64, steps, {.horizon = 2}, {.max_bytes = all.bytes / 2});
  EXPECT_LE(half.bytes, all.bytes / 2);
  EXPECT_GE(half.contexts, 2);
  EXPECT_GT(half.patches_reused, all.patches_reused / 4) << "some alignments are kept all the time";
  EXPECT_LT(half.patches_reused, all.patches_reused);
  const SessionStats none =
      expect_exact(engine_, whole, 64, steps, {.horizon = 2}, {.max_bytes = one / 2});
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_EQ(none.patches_reused, 0);
}

TEST_F(SessionTest, SpaceWiseLayersEverywhere) {
  for (const bool first : {false, true}) {
    Toto1Config config = small_config();
    config.num_layers = 4;
    config.spacewise_every_n_layers = 2;
    config.spacewise_first = first;
    const Engine engine = Engine::load(made_model(folder_, config, first ? 11 : 10));
    Series whole = wide_walk(9, 150, 4);
    whole.group_ids = {0, 1, 0, 1};
    const SessionStats stats = expect_exact(engine, whole, 50, {8, 8, 1, 24, 7}, {.horizon = 20});
    EXPECT_EQ(stats.patches_computed, 7 + 1 + 1 + 9 + 3 + 4);
  }
}

TEST_F(SessionTest, EveryScalerIsExactAndOnlyCausalOnesReuse) {
  for (const Toto1Scaler scaler :
       {Toto1Scaler::std_mean, Toto1Scaler::causal_std_mean, Toto1Scaler::causal_patch_std_mean}) {
    Toto1Config config = small_config();
    config.scaler = scaler;
    const Engine engine =
        Engine::load(made_model(folder_, config, 20 + static_cast<std::uint64_t>(scaler)));
    const SessionStats stats = expect_exact(engine, wide_walk(10, 150), 40, {8, 8, 16, 1}, {});
    EXPECT_EQ(stats.patches_reused > 0, scaler != Toto1Scaler::std_mean);
  }
  // A clamp that acts depends on the whole context: patches that it changed are not reused.
  Toto1Config config = small_config();
  config.scale_factor_exponent = 0.01;
  const Engine engine = Engine::load(made_model(folder_, config, 30));
  expect_exact(engine, wide_walk(11, 150), 40, {8, 8, 16}, {.horizon = 12});
}

// Checkpoints of every kind: variate labels, odd sizes, single Student-T, clamps that act.
TEST_F(SessionTest, EveryArchitecture) {
  for (const char* name : {"variate_labels", "labels_targets_only", "odd_sizes", "odd_head_dim",
                           "student_t_std_mean", "scale_clamp_tight", "spacewise_every_3_first"}) {
    SCOPED_TRACE(name);
    const Engine engine = Engine::load(std::string(TOTO_SOURCE_DIR) + "/tests/golden/" + name);
    const auto patch = static_cast<std::size_t>(engine.model().facts.patch);
    Series whole = wide_walk(16, static_cast<int>(12 * patch), 3);
    whole.num_exogenous = 1;
    ForecastOptions options;
    options.horizon = static_cast<int>(patch) + 1;
    options.num_samples = 5;
    expect_exact(engine, whole, 5 * patch + 1, {patch, 2 * patch, 1, patch - 1, patch}, options);
  }
}

TEST_F(SessionTest, AppendClearsKnownFutures) {
  Series whole = wide_walk(12, 100, 3);
  whole.num_exogenous = 1;
  Session session = engine_.open(beginning_of(whole, 60));
  for (std::size_t length = 60; length < 84; length += kPatch) {
    Series fresh = beginning_of(whole, length);
    const std::vector<float> future(20, static_cast<float>(length));
    session.set_known_future(future);
    fresh.future_exogenous = future;
    expect_same(session.forecast({.horizon = 20}), engine_.forecast(fresh, {.horizon = 20}));
    session.append(slice(whole, length, length + kPatch));
    EXPECT_TRUE(session.series().future_exogenous.empty());
  }
  EXPECT_EQ(session.stats().patches_computed, 8 + 1 + 1);
}

TEST_F(SessionTest, ABatchAnswersLikeSingleSessions) {
  for (const Mode mode : {Mode::standard, Mode::reduce_overhead}) {
    const Engine engine = Engine::load(model_, {.mode = mode});
    std::vector<Series> wholes;
    std::vector<Session> sessions;
    std::vector<Session*> batch;
    for (unsigned i = 0; i < 30; ++i) {
      wholes.push_back(wide_walk(100 + i, 200, 1 + static_cast<int>(i % 3)));
      sessions.push_back(engine.open(beginning_of(wholes[i], 20 + 3 * i)));
    }
    batch.reserve(sessions.size() + 1);
    for (Session& session : sessions) batch.push_back(&session);
    std::vector<Forecast> out;
    for (int round = 0; round < 4; ++round) {
      engine.forecast_into(batch, {.horizon = 12}, out);
      for (std::size_t i = 0; i < sessions.size(); ++i) {
        SCOPED_TRACE(i);
        expect_same(out[i], engine.forecast(sessions[i].series(), {.horizon = 12}));
        const std::size_t length = sessions[i].series().length();
        sessions[i].append(slice(wholes[i], length, length + kPatch));
      }
    }
    for (const Session& session : sessions) EXPECT_GT(session.stats().patches_reused, 0);
    batch.push_back(batch.front());
    EXPECT_NE(error_of([&] { engine.forecast_into(batch, {}, out); }).find("appears twice"),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                engine_.forecast_into(std::span(batch).first(1), {}, out);
              }).find("another engine"),
              std::string::npos);
  }
}

TEST_F(SessionTest, SurvivesACancelledForecast) {
  const Series whole = wide_walk(13, 2000, 3);  // two passes of tokens, then the first patch
  Session session = engine_.open(beginning_of(whole, 1600));
  for (const int allowed : {0, 1, 2}) {
    int asked = 0;
    ForecastOptions options{.horizon = 4};
    options.cancelled = [&] { return asked++ >= allowed; };
    ErrorCode code{};
    error_of([&] { session.forecast(options); }, &code);
    EXPECT_EQ(code, ErrorCode::cancelled) << allowed;
  }
  expect_same(session.forecast({.horizon = 4}),
              engine_.forecast(beginning_of(whole, 1600), {.horizon = 4}));
  session.append(slice(whole, 1600, 1640));
  expect_same(session.forecast(), engine_.forecast(beginning_of(whole, 1640)));
  EXPECT_EQ(session.stats().forecasts, 2);
}

TEST_F(SessionTest, OutlivesItsEngineAndReferenceModeComputesAll) {
  const Series whole = wide_walk(14, 100);
  Session session = Engine::load(model_, {.mode = Mode::reference}).open(beginning_of(whole, 64));
  const Engine reference = Engine::load(model_, {.mode = Mode::reference});
  for (std::size_t length = 64; length < 80; length += kPatch) {
    expect_same(session.forecast({.horizon = 4}),
                reference.forecast(beginning_of(whole, length), {.horizon = 4}));
    session.append(slice(whole, length, length + kPatch));
  }
  EXPECT_EQ(session.stats().patches_reused, 0);
  EXPECT_EQ(session.stats().patches_computed, 8 + 9);
  EXPECT_EQ(session.stats().bytes, 0u);
}

TEST_F(SessionTest, RefusesBadInputUnchanged) {
  EXPECT_NE(error_of([&] { engine_.open({}); }).find("is empty"), std::string::npos);
  EXPECT_NE(error_of([&] { engine_.open(wide_walk(1, 10), {.max_length = 0}); }).find("max_length"),
            std::string::npos);
  Session session = engine_.open(wide_walk(15, 60, 2, "pair"));
  const Forecast before = session.forecast();
  const std::vector<float> odd = {1, 2, 3}, infinite = {1, 2, 3, INFINITY};
  EXPECT_NE(error_of([&] {
              session.append(odd);
            }).find("session \"pair\": 3 values are appended, expected a multiple of its 2"),
            std::string::npos);
  EXPECT_NE(error_of([&] { session.append(infinite); }).find("variate 1 has an infinite value"),
            std::string::npos);
  EXPECT_NE(error_of([&] { session.forecast({.horizon = 0}); }).find("horizon is 0"),
            std::string::npos);
  session.set_known_future({1, 2});
  EXPECT_NE(error_of([&] { session.forecast(); }).find("known future"), std::string::npos);
  session.set_known_future({});
  expect_same(session.forecast(), before);
}

}  // namespace
}  // namespace toto
