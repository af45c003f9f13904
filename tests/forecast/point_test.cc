// The specifications of --point: accepted forms and error messages.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "forecast/summary.h"
#include "special_values.h"
#include "toto/toto.h"

namespace toto {
namespace {

using Kind = Point::Kind;

void expect_point(std::string_view spec, Kind kind, double a = 0, double b = 0) {
  SCOPED_TRACE(spec);
  const Point point = parse_point(spec);
  EXPECT_EQ(point.kind, kind);
  EXPECT_EQ(point.a, a);
  EXPECT_EQ(point.b, b);
}

// The message of the refusal.
template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return "";
}

std::string refusal_of(std::string_view spec) {
  return refusal([&] { parse_point(spec); });
}

TEST(ParsePoint, UnderstandsEveryForm) {
  expect_point("mean", Kind::mean);
  expect_point("median", Kind::median);
  expect_point("quantile_0.15", Kind::quantile, 0.15);
  expect_point("trimmed_mean_0.1", Kind::trimmed_mean, 0.1);
  expect_point("lower_trimmed_mean_0.2", Kind::lower_trimmed_mean, 0.2);
  expect_point("upper_trimmed_mean_0.9", Kind::upper_trimmed_mean, 0.9);
  expect_point("mean_minus_std_0.8", Kind::mean_minus_std, 0.8);
  expect_point("mean_plus_std_2", Kind::mean_plus_std, 2);
  expect_point("mean_quantile_mix_0.15_0.3", Kind::mean_quantile_mix, 0.15, 0.3);
  expect_point("quantile_plus_std_0.15_0.12", Kind::quantile_plus_std, 0.15, 0.12);
}

TEST(ParsePoint, TakesSharesAndLevelsAboveOneAsPercentages) {
  expect_point("quantile_50", Kind::quantile, 0.5);
  expect_point("quantile_2.5", Kind::quantile, 0.025);
  expect_point("trimmed_mean_10", Kind::trimmed_mean, 0.1);
  expect_point("lower_trimmed_mean_15", Kind::lower_trimmed_mean, 0.15);
  expect_point("upper_trimmed_mean_99", Kind::upper_trimmed_mean, 0.99);
  expect_point("mean_quantile_mix_40_0.5", Kind::mean_quantile_mix, 0.4, 0.5);
  expect_point("quantile_plus_std_15_3", Kind::quantile_plus_std, 0.15, 3);
  expect_point("mean_plus_std_30", Kind::mean_plus_std, 30);  // a count is a count
}

TEST(ParsePoint, AcceptsValidLimits) {
  expect_point("trimmed_mean_0", Kind::trimmed_mean, 0);
  expect_point("trimmed_mean_49.9", Kind::trimmed_mean, 49.9 / 100);
  expect_point("lower_trimmed_mean_0", Kind::lower_trimmed_mean, 0);
  expect_point("mean_minus_std_0", Kind::mean_minus_std, 0);
  expect_point("mean_quantile_mix_0.5_0", Kind::mean_quantile_mix, 0.5, 0);
  expect_point("mean_quantile_mix_0.5_1", Kind::mean_quantile_mix, 0.5, 1);
  expect_point("quantile_plus_std_0.5_-0.25", Kind::quantile_plus_std, 0.5, -0.25);
  expect_point("quantile_1e-3", Kind::quantile, 1e-3);
}

TEST(ParsePoint, ListsTheChoicesForAnUnknownName) {
  for (const std::string_view spec :
       {"", "Mean", "avg", "mean_", "mean_0.5", "median_5", "quantile", "trimmed", "trimmed_mean",
        "lower_trimmed", " mean", "mean ", "_quantile_0.5", "p10"}) {
    SCOPED_TRACE(spec);
    const std::string message = refusal_of(spec);
    for (const char* choice :
         {"mean,", "median,", "quantile_Q,", "trimmed_mean_P,", "lower_trimmed_mean_P,",
          "upper_trimmed_mean_P,", "mean_minus_std_C,", "mean_plus_std_C,",
          "mean_quantile_mix_Q_W,", "quantile_plus_std_Q_C"}) {
      EXPECT_NE(message.find(choice), std::string::npos) << message;
    }
  }
}

TEST(ParsePoint, RefusesTextThatIsNotANumber) {
  for (const std::string_view spec : {"quantile_",
                                      "quantile_x",
                                      "quantile_0.5x",
                                      "quantile_0.5_",
                                      "quantile_0.5_0.5",
                                      "quantile_ 0.5",
                                      "quantile_0.5 ",
                                      "quantile_+0.5",
                                      "quantile_0x1p-1",
                                      "quantile_nan",
                                      "quantile_inf",
                                      "quantile_-inf",
                                      "quantile_1e999",
                                      "quantile_0,5",
                                      "quantile_0.5%",
                                      "trimmed_mean_",
                                      "trimmed_mean_ten",
                                      "mean_plus_std_",
                                      "mean_plus_std_nan",
                                      "mean_quantile_mix_0.5_",
                                      "mean_quantile_mix__0.5",
                                      "mean_quantile_mix_0.5_0.5_0.5",
                                      "mean_quantile_mix_0.5_x",
                                      "quantile_plus_std_0.5_inf",
                                      "quantile_plus_std_q_1"}) {
    SCOPED_TRACE(spec);
    EXPECT_NE(refusal_of(spec).find("is not a number; expected "), std::string::npos);
  }
}

TEST(ParsePoint, RefusesAMissingSecondNumber) {
  EXPECT_EQ(refusal_of("mean_quantile_mix_0.5"),
            "point 'mean_quantile_mix_0.5': one number found; expected two, mean_quantile_mix_Q_W");
  EXPECT_NE(refusal_of("quantile_plus_std_0.5").find("expected two"), std::string::npos);
}

TEST(ParsePoint, RefusesValuesOutOfRange) {
  for (const std::string_view spec :
       {"quantile_0", "quantile_1", "quantile_100", "quantile_-0.5", "quantile_150",
        "mean_quantile_mix_0_0.5", "quantile_plus_std_1_0.5"}) {
    SCOPED_TRACE(spec);
    EXPECT_NE(refusal_of(spec).find("expected a level between 0 and 1"), std::string::npos);
  }
  for (const std::string_view spec : {"trimmed_mean_50", "trimmed_mean_0.5", "trimmed_mean_1",
                                      "trimmed_mean_99", "trimmed_mean_-0.1"}) {
    SCOPED_TRACE(spec);
    EXPECT_NE(refusal_of(spec).find("less than 0.5"), std::string::npos);
  }
  for (const std::string_view spec : {"lower_trimmed_mean_1", "lower_trimmed_mean_100",
                                      "upper_trimmed_mean_101", "upper_trimmed_mean_-1"}) {
    SCOPED_TRACE(spec);
    EXPECT_NE(refusal_of(spec).find("less than 1"), std::string::npos);
  }
  for (const std::string_view spec : {"mean_minus_std_-1", "mean_plus_std_-0.5"}) {
    SCOPED_TRACE(spec);
    EXPECT_NE(refusal_of(spec).find("zero or more"), std::string::npos);
  }
  for (const std::string_view spec : {"mean_quantile_mix_0.5_1.5", "mean_quantile_mix_0.5_-0.1"}) {
    SCOPED_TRACE(spec);
    EXPECT_NE(refusal_of(spec).find("weight from 0 to 1"), std::string::npos);
  }
}

TEST(ParsePoint, ReportsTheValueInOneSentence) {
  EXPECT_EQ(refusal_of("trimmed_mean_50"),
            "point 'trimmed_mean_50': a share of 0.5 cut from each end leaves nothing; expected at "
            "least 0 and less than 0.5 (a number above 1 is a percentage)");
  EXPECT_EQ(
      refusal_of("quantile_150"),
      "point 'quantile_150': the level is 1.5; expected a level between 0 and 1, both excluded "
      "(a number above 1 is a percentage)");
}

TEST(ParsePoint, PrintsUntrustedTextShortAndPrintable) {
  const std::string message =
      refusal_of(std::string("quan\ntile\x1b[31m\xff") + std::string(10'000, 'x'));
  EXPECT_LT(message.size(), 400u);
  for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~');
  EXPECT_LT(refusal_of("quantile_" + std::string(100'000, '9') + "x").size(), 400u);
}

TEST(NameOf, IsReadBackTheSame) {
  for (const Point point :
       {Point{Kind::mean}, Point{Kind::median}, Point{Kind::quantile, 0.1},
        Point{Kind::quantile, 1e-9}, Point{Kind::quantile, 1.0 / 3},
        Point{Kind::trimmed_mean, 0.25}, Point{Kind::lower_trimmed_mean, 0.7},
        Point{Kind::upper_trimmed_mean, 0.999}, Point{Kind::mean_minus_std, 1.5},
        Point{Kind::mean_plus_std, 12}, Point{Kind::mean_quantile_mix, 0.4, 0.5},
        Point{Kind::quantile_plus_std, 0.15, -0.12}}) {
    const std::string name = name_of(point);
    expect_point(name, point.kind, point.a, point.b);
  }
  EXPECT_EQ(name_of({Kind::median}), "median");
  EXPECT_EQ(name_of(parse_point("trimmed_mean_10")), "trimmed_mean_0.1");
  EXPECT_EQ(name_of(parse_point("mean_quantile_mix_40_0.5")), "mean_quantile_mix_0.4_0.5");
}

TEST(CheckPoint, RefusesInvalidPoints) {
  EXPECT_NO_THROW(check_point({}));
  EXPECT_NO_THROW(check_point({Kind::median, kMissing, kMissing}));  // unused numbers do not matter
  for (const Point point :
       {Point{Kind::quantile, kMissing}, Point{Kind::quantile, kInfinity},
        Point{Kind::trimmed_mean, kMissing}, Point{Kind::mean_plus_std, kInfinity},
        Point{Kind::mean_plus_std, kMissing}, Point{Kind::mean_quantile_mix, 0.5, kMissing},
        Point{Kind::quantile_plus_std, 0.5, kMissing},
        Point{Kind::quantile_plus_std, 0.5, -kInfinity}}) {
    EXPECT_NE(refusal([&] { check_point(point); }), "");
  }
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the point of the test
  const Point none{.kind = static_cast<Kind>(77)};
  EXPECT_EQ(refusal([&] { check_point(none); }), "point: unknown kind 77; expected 0 to 9");
}

}  // namespace
}  // namespace toto
