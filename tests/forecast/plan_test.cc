// Plans: one per shape class, the same bits as without them, counted, limited and logged.
#include <gtest/gtest.h>

#include "allocation_hook.h"
#include "base/memory.h"
#include "forecast/plan_cache.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::made_model;
using testing::TemporaryFolder;
using testing::walk;

TEST(PlannedTokens, LeaveLittleRoomAndFewClasses) {
  int classes = 0;
  for (int n = 1; n <= 4096; ++n) {
    const int room = size_class(n);
    ASSERT_GE(room, n);
    ASSERT_LE(room, n + n / 4) << n;
    ASSERT_EQ(size_class(room), room);
    classes += room == n ? 1 : 0;
  }
  EXPECT_LT(classes, 60);
}

TEST(PlanCache, DropsTheLeastRecentlyUsedAndLogsWhy) {
  std::vector<std::string> log;
  PlanCache cache(2, [&log](std::string_view line) { log.emplace_back(line); });
  cache.add({1}, "one");
  cache.add({2}, "two");
  EXPECT_NE(cache.find({1}), nullptr);
  cache.finish_warm_up();
  cache.add({3}, "three");  // evicts two
  EXPECT_EQ(cache.find({2}), nullptr);
  EXPECT_NE(cache.find({1}), nullptr);
  cache.add({2}, "two");
  EXPECT_EQ(log, (std::vector<std::string>{
                     "plan 1: new shape class: one", "plan 2: new shape class: two",
                     "replan 3: new shape class: three", "replan 4: evicted: two"}));
  EXPECT_EQ(cache.num_made(), 4);
  EXPECT_EQ(cache.replans(), 2);
}

class PlanTest : public ::testing::Test {
 protected:
  // Twenty shapes: lengths, variates, batches, horizons, samples.
  struct Shape {
    std::vector<Series> batch;
    ForecastOptions options;
  };
  static std::vector<Shape> mixed_shapes() {
    std::vector<Shape> shapes;
    for (unsigned i = 0; i < 20; ++i) {
      Shape shape;
      for (unsigned s = 0; s <= i % 4; ++s) {
        const int length = 1 + static_cast<int>((i * 37 + s * 91) % 300);
        shape.batch.push_back(walk(i * 10 + s, length, 1 + static_cast<int>(i % 3)));
      }
      shape.options.horizon = 1 + static_cast<int>(i * 5 % 40);
      shape.options.num_samples = i % 2 == 0 ? 0 : 17;
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }

  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
};

TEST_F(PlanTest, GiveTheSameBitsAndAreMadeOnce) {
  std::vector<std::string> log;
  const Engine plain = Engine::load(model_);
  const Engine planned =
      Engine::load(model_, {.mode = Mode::reduce_overhead,
                            .on_plan = [&log](std::string_view line) { log.emplace_back(line); }});
  const std::vector<Shape> shapes = mixed_shapes();
  std::vector<std::vector<Forecast>> results(shapes.size());
  for (int round = 0; round <= 50; ++round) {  // 1000 forecasts after the first ones
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      const Shape& shape = shapes[s];
      std::vector<Forecast>& result = results[s];
      const long before = testing::allocations.load();
      planned.forecast_into(shape.batch, shape.options, result);
      ASSERT_TRUE(round == 0 || testing::allocations.load() == before) << round << " " << s;
      if (round > 1) continue;
      const std::vector<Forecast> expected = plain.forecast(shape.batch, shape.options);
      for (std::size_t i = 0; i < result.size(); ++i) {
        ASSERT_EQ(result[i].mean, expected[i].mean);
        ASSERT_EQ(result[i].quantiles, expected[i].quantiles);
      }
    }
    if (round == 0) planned.finish_warm_up();
  }
  EXPECT_EQ(planned.replans(), 0);
  EXPECT_EQ(planned.plans(), static_cast<std::int64_t>(log.size()));
  EXPECT_LE(planned.plans(), 20);
  EXPECT_GT(planned.plans(), 5);
  EXPECT_EQ(plain.plans(), 0);

  planned.forecast(walk(1, 5000), {});
  EXPECT_EQ(planned.replans(), 1);
  EXPECT_TRUE(log.back().starts_with("replan")) << log.back();
  EXPECT_NE(log.back().find("new shape class: 1 series"), std::string::npos) << log.back();
}

TEST_F(PlanTest, ASmallCacheReplansButNeverDiffers) {
  const Engine plain = Engine::load(model_);
  const Engine planned =
      Engine::load(model_, {.mode = Mode::reduce_overhead, .plan_cache_size = 1});
  planned.finish_warm_up();
  for (int round = 0; round < 3; ++round) {
    for (const int length : {10, 200}) {
      EXPECT_EQ(planned.forecast(walk(1, length)).mean, plain.forecast(walk(1, length)).mean);
    }
  }
  EXPECT_EQ(planned.replans(), 6);
}

// A series that grows bar by bar keeps its plan for many bars.
TEST_F(PlanTest, AGrowingSeriesRarelyReplans) {
  const Engine engine = Engine::load(model_, {.mode = Mode::reduce_overhead});
  for (int length = 100; length < 400; ++length) engine.forecast(walk(1, length));
  EXPECT_LT(engine.plans(), 12);
}

TEST(ArenaTest, DistinguishesBlocksOfTheSameSize) {
  Arena arena;
  arena.reserve(4096);
  const std::uint64_t first = arena.generation();
  testing::fail_at = 1;
  EXPECT_ANY_THROW(arena.reserve(8192));
  testing::fail_at = 0;
  arena.reserve(4096);
  EXPECT_NE(arena.generation(), first);
}

// A forecast that runs out of memory frees the arena. Plans that pointed into it are laid out
// again, even if the next arena has the same size.
TEST_F(PlanTest, SurviveARefusedForecast) {
  const Series small = walk(1, 20), medium = walk(2, 500), large = walk(3, 4000);
  const ForecastOptions options;  // created here so that its own allocations succeed
  const Engine plain = Engine::load(model_);
  for (const Mode mode : {Mode::reduce_overhead, Mode::max_autotune}) {
    const Engine engine = Engine::load(model_, {.mode = mode, .threads = 1});
    for (const Series* series : {&small, &medium, &small}) engine.forecast(*series, options);
    const int failures =
        testing::fail_each_allocation([&] { engine.forecast(large, options); },
                                      [&] {
                                        for (const Series* series : {&medium, &small}) {
                                          ASSERT_EQ(engine.forecast(*series, options).quantiles,
                                                    plain.forecast(*series, options).quantiles);
                                        }
                                      });
    EXPECT_GT(failures, 3);
  }
}

TEST_F(PlanTest, TheCacheHoldsAtLeastOne) {
  EXPECT_THROW(Engine::load(model_, {.mode = Mode::reduce_overhead, .plan_cache_size = 0}), Error);
}

}  // namespace
}  // namespace toto
