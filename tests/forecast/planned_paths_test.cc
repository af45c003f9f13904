// The functions that decide how a forecast is computed, used by engine, server and command.
#include <gtest/gtest.h>

#include "toto/toto.h"

namespace toto {
namespace {

const ModelFacts kSampling{.patch = 64, .block = 64, .can_sample = true};
const ModelFacts kQuantiles{.patch = 32, .block = 0, .levels = {0.1, 0.5, 0.9}};

TEST(PlannedPaths, AreDrawnBeyondTheFirstBlockOrWhenAskedFor) {
  EXPECT_EQ(planned_paths({.horizon = 64}, kSampling), 0);
  EXPECT_EQ(planned_paths({.horizon = 65}, kSampling), kDefaultPaths);
  EXPECT_EQ(planned_paths({.horizon = 65, .num_paths = 9}, kSampling), 9);
  EXPECT_EQ(planned_paths({.horizon = 8, .num_samples = 7}, kSampling), 7);
  EXPECT_EQ(planned_paths({.horizon = 65, .num_samples = 7, .num_paths = 9}, kSampling), 7);
  EXPECT_EQ(planned_paths({.horizon = 8, .keep_samples = true}, kSampling), kDefaultPaths);
  EXPECT_EQ(planned_paths({.horizon = 65, .decode = Decode::mean}, kSampling), 1);
  EXPECT_EQ(planned_paths({.horizon = 64, .decode = Decode::mean}, kSampling), 0);
  EXPECT_EQ(planned_paths({.horizon = 1000}, kQuantiles), 0);
  EXPECT_EQ(planned_paths({.horizon = 1000, .num_samples = 7}, kQuantiles), 7);
}

TEST(ExactSteps, AreThoseOfTheFirstBlockUnlessSampled) {
  EXPECT_EQ(exact_steps({.horizon = 100}, kSampling), 64);
  EXPECT_EQ(exact_steps({.horizon = 30}, kSampling), 30);
  EXPECT_EQ(exact_steps({.horizon = 100, .num_samples = 5}, kSampling), 0);
  EXPECT_EQ(exact_steps({.horizon = 100, .decode = Decode::mean}, kSampling), 100);
  EXPECT_EQ(exact_steps({.horizon = 1000, .num_samples = 5}, kQuantiles), 1000);
  EXPECT_EQ(kSampling.exact_steps(100), 64);
  EXPECT_EQ(kQuantiles.exact_steps(1000), 1000);
}

TEST(AnswerBytes, CountEveryArray) {
  const ForecastOptions plain{.horizon = 10, .quantiles = {0.5}};
  EXPECT_EQ(answer_bytes(3, plain, kSampling), 3 * 10 * 4 * 4);
  ForecastOptions kept = plain;
  kept.keep_samples = true;
  EXPECT_EQ(answer_bytes(3, kept, kSampling), 3 * 10 * (4 + kDefaultPaths) * 4);
  kept.num_samples = 2;
  EXPECT_EQ(answer_bytes(3, kept, kSampling), 3 * 10 * 6 * 4);
  kept.num_samples = 0;
  kept.decode = Decode::mean;  // which keeps no samples
  EXPECT_EQ(answer_bytes(3, kept, kSampling), 3 * 10 * 4 * 4);
}

TEST(AllIsas, AreNamedAndParsed) {
  EXPECT_EQ(all_isas().front(), Isa::reference);
  for (const Isa isa : all_isas()) EXPECT_EQ(parse_isa(name_of(isa)), isa);
  EXPECT_TRUE(isa_available(best_isa()));
}

}  // namespace
}  // namespace toto
