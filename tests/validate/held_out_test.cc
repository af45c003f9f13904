// Windows of real values and the figures computed on them.
#include "validate/held_out.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "held_out_fixture.h"
#include "validate/latency.h"

namespace toto::validate {
namespace {

Symbol counting(int length) {
  Symbol symbol{.name = "COUNT", .values = {}};
  for (int i = 0; i < length; ++i) symbol.values.push_back(static_cast<float>(i));
  return symbol;
}

TEST(HeldOutWindows, AreTheLastOnesAndDoNotOverlap) {
  const std::vector<Window> windows = held_out_windows(counting(100), 40, 4, 3);
  ASSERT_EQ(windows.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const Window& window = windows[static_cast<std::size_t>(i)];
    const auto start = static_cast<float>(88 + 4 * i);
    EXPECT_EQ(window.actual, (std::vector<float>{start, start + 1, start + 2, start + 3}));
    EXPECT_EQ(window.context.values.size(), 40U);
    EXPECT_EQ(window.context.values.back(), start - 1) << "nothing of the window itself";
    EXPECT_EQ(window.latest, start - 1);
    EXPECT_EQ(window.context.id, "COUNT");
  }
}

TEST(HeldOutWindows, HaveOneLengthInAShortFile) {
  const std::vector<Window> windows = held_out_windows(counting(50), 512, 5, 3);
  for (const Window& window : windows) EXPECT_EQ(window.context.values.size(), 35U);
}

TEST(HeldOutWindows, SkipThoseWithMissingValues) {
  Symbol symbol = counting(60);
  for (std::size_t i = 56; i < 58; ++i) symbol.values[i] = NAN;
  std::vector<std::string> remarks;
  const std::vector<Window> windows = held_out_windows(symbol, 10, 2, 2, &remarks);
  EXPECT_EQ(windows[0].actual, (std::vector<float>{54, 55}));
  EXPECT_EQ(windows[1].actual, (std::vector<float>{58, 59}));
  EXPECT_EQ(windows[1].latest, 55) << "the last value that is there";
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0], "COUNT: 1 of the last 3 windows have missing values and were skipped");
  symbol.values[53] = NAN;  // one of two is not enough
  EXPECT_EQ(held_out_windows(symbol, 10, 2, 3)[0].actual, (std::vector<float>{50, 51}));
}

TEST(HeldOutWindows, TooFewTargetsAreRefused) {
  ErrorCode code{};
  const std::string error =
      testing::error_of([] { (void)held_out_windows(counting(40), 512, 4, 3); }, &code);
  EXPECT_EQ(code, ErrorCode::corrupt_file);
  for (const char* part : {"\"COUNT\"", "40 values", "give 2 windows", "expected 3"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

// What came last is what forecasts are to be judged by; older values are no substitute.
TEST(HeldOutWindows, MissingLastValuesAreRefused) {
  for (const auto& [first, last, missing] :
       {std::tuple(40, 100, "4 of its last 4"), std::tuple(99, 100, "1 of its last 4"),
        std::tuple(96, 99, "3 of its last 4")}) {
    Symbol symbol = counting(100);
    for (int i = first; i < last; ++i) symbol.values[static_cast<std::size_t>(i)] = NAN;
    ErrorCode code{};
    const std::string error =
        testing::error_of([&] { (void)held_out_windows(symbol, 512, 4, 3); }, &code);
    EXPECT_EQ(code, ErrorCode::corrupt_file);
    EXPECT_NE(error.find("\"COUNT\""), std::string::npos) << error;
    EXPECT_NE(error.find(missing), std::string::npos) << error;
  }
}

TEST(HeldOutWindows, OfAConstantSymbolAreEqual) {
  EXPECT_FALSE(all_equal(held_out_windows(counting(100), 40, 4, 3)));
  EXPECT_TRUE(all_equal(held_out_windows({"FLAT", std::vector<float>(100, 7)}, 40, 4, 3)));
}

TEST(Accuracy, MatchesItsDefinitions) {
  Accuracy accuracy;
  accuracy.add(std::vector<float>{1, 2, 5, 9}, std::vector<float>{2, 2, NAN, 4});
  EXPECT_EQ(accuracy.count(), 3);
  EXPECT_DOUBLE_EQ(accuracy.mae(), 2);                               // 1, 0, 5
  EXPECT_DOUBLE_EQ(accuracy.rmse(), std::sqrt(26.0 / 3));            //
  EXPECT_DOUBLE_EQ(accuracy.mape(), (0.5 + 0 + 1.25) / 3);           //
  EXPECT_DOUBLE_EQ(accuracy.prediction_mean(), 4);                   // 1, 2, 9
  EXPECT_DOUBLE_EQ(accuracy.prediction_std(), std::sqrt(38.0 / 3));  //
  EXPECT_DOUBLE_EQ(accuracy.target_mean(), 8.0 / 3);
}

TEST(Accuracy, IsUndefinedWithoutTargets) {
  Accuracy accuracy;
  accuracy.add(std::vector<float>{1}, std::vector<float>{NAN});
  for (const double figure : {accuracy.mae(), accuracy.rmse(), accuracy.mape(),
                              accuracy.prediction_std(), accuracy.target_mean()}) {
    EXPECT_TRUE(std::isnan(figure));
  }
  accuracy.add(3.0, 0.0);
  EXPECT_TRUE(std::isnan(accuracy.mape())) << "nothing is a share of 0";
  EXPECT_EQ(accuracy.mae(), 3);
}

TEST(Accuracy, ChangeIsRelativeAndIgnoresRounding) {
  const auto of = [](double predicted) {
    Accuracy accuracy;
    accuracy.add(predicted, 100.0);
    return accuracy;
  };
  EXPECT_DOUBLE_EQ(mae_change(of(102), of(104)), 0.5);
  EXPECT_EQ(mae_change(of(102), of(102)), 0);
  EXPECT_EQ(mae_change(of(100), of(100)), 0);
  EXPECT_LT(mae_change(of(100.00001), of(100)), 0.05) << "an exact forecast may be rounded";
  EXPECT_GT(mae_change(of(101), of(100)), 0.05);
  EXPECT_TRUE(std::isnan(mae_change(of(NAN), of(101))));
}

TEST(Latency, IsADistribution) {
  const std::vector<double> times = {5, 1, 2, 3, 4};
  const Latency latency = latency_of(times);
  EXPECT_EQ(latency.min, 1);
  EXPECT_EQ(latency.p50, 3);
  EXPECT_DOUBLE_EQ(latency.p95, 4.8);
  EXPECT_EQ(latency.max, 5);
  EXPECT_EQ(latency.mean, 3);
  EXPECT_DOUBLE_EQ(latency.std, std::sqrt(2.5));
  EXPECT_EQ(latency_of(std::vector<double>{7}).std, 0);
  EXPECT_TRUE(std::isnan(latency_of({}).p50));
  EXPECT_EQ(latency.count, 5U);
}

// One slow call in ten is not seen in the median.
TEST(Latency, ALongTailGetsARemark) {
  std::vector<double> times(20, 2.0);
  EXPECT_FALSE(tail_remark("default", latency_of(times)));
  times[3] = times[7] = 7;
  const auto remark = tail_remark("default", latency_of(times));
  ASSERT_TRUE(remark);
  EXPECT_NE(remark->find("default: p95 is 7 ms, 3.5 times the 2 ms of p50 (n 20)"),
            std::string::npos)
      << *remark;
  EXPECT_FALSE(tail_remark("default", latency_of({})));
}

}  // namespace
}  // namespace toto::validate
