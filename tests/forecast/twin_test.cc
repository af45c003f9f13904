// Engines that share their weights and nothing else.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/process_memory.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::walk;

class TwinTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  std::string model_ = testing::made_model(folder_);
  Series series_ = walk(1, 200, 2);
  ForecastOptions options_{.horizon = 40, .num_samples = 50};
};

TEST_F(TwinTest, AnswersTheSameBitsAtTheSameTimeInEveryMode) {
  for (const Mode mode :
       {Mode::reference, Mode::standard, Mode::reduce_overhead, Mode::max_autotune}) {
    std::optional<Engine> engine = Engine::load(model_, {.mode = mode, .threads = 2});
    const Forecast expected = engine->forecast(series_, options_);
    const Engine twin = engine->twin(), single = engine->twin(1);
    EXPECT_EQ(twin.options().threads, 2);
    EXPECT_EQ(single.options().threads, 1);
    EXPECT_EQ(twin.options().mode, mode);
    EXPECT_EQ(twin.model().weights_sha256, engine->model().weights_sha256);
    std::thread beside([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(engine->forecast(series_, options_).mean, expected.mean);
      }
    });
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(twin.forecast(series_, options_).mean, expected.mean);
      EXPECT_EQ(single.forecast(series_, options_).quantiles, expected.quantiles);
    }
    beside.join();
    engine.reset();
    EXPECT_EQ(twin.forecast(series_, options_).mean, expected.mean) << "it outlives the first one";
  }
}

TEST_F(TwinTest, TakesNoMemoryForWeights) {
  const Engine engine = Engine::load(model_);
  const auto before = heap_bytes();
  const Engine twin = engine.twin();
  const auto after = heap_bytes();
  if (!before || !after) GTEST_SKIP() << "the allocator does not count";
  EXPECT_EQ(twin.model().weight_bytes, engine.model().weight_bytes);
  EXPECT_LT(*after - *before, engine.model().weight_bytes / 4);
}

TEST_F(TwinTest, CountsItsOwnPlans) {
  const Engine engine = Engine::load(model_, {.mode = Mode::reduce_overhead});
  engine.forecast(series_, options_);
  const Engine twin = engine.twin();
  EXPECT_GT(engine.plans(), 0);
  EXPECT_EQ(twin.plans(), 0);
  EXPECT_NE(error_of([&] { (void)engine.twin(-1); }).find("threads"), std::string::npos);
}

}  // namespace
}  // namespace toto
