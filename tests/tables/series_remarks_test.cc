// The sentences about series that command, service and Python share.
#include "tables/series_remarks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace toto::tables {
namespace {

using Sentences = std::vector<std::string>;

const ModelFacts kFacts{.patch = 8, .block = 8, .can_sample = true, .minimum_scale = 0.3};
const ForecastOptions kTen{.horizon = 4, .max_context = 10};

std::vector<float> rising(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(SeriesRemarks, NothingIsSaidOfAnOrdinarySeries) {
  SeriesRemarks remarks(kTen, false);
  remarks.add("a", rising(10));
  EXPECT_EQ(remarks.about_data(), Sentences{});
  EXPECT_EQ(remarks.about_model(kFacts, kTen), Sentences{});
}

TEST(SeriesRemarks, OnlyTheContextCounts) {
  std::vector<float> values = rising(12);
  values[0] = NAN;  // dropped
  values[1] = 5;    // cut, like the gap after it
  std::vector<float> longer(30, NAN);
  longer[0] = 1;
  std::copy(values.begin() + 2, values.end(), longer.begin() + 20);
  SeriesRemarks remarks(kTen, true);
  remarks.add("a", longer);
  EXPECT_EQ(remarks.about_data(), Sentences{}) << "the context was asked for";
  SeriesRemarks all(kTen, false);
  all.add("a", longer);
  EXPECT_EQ(all.about_data(),
            Sentences{"the latest 10 of 30 values are used of the series \"a\"; --context N uses "
                      "more"});
}

TEST(SeriesRemarks, SeriesOfOneKindAreOneSentence) {
  SeriesRemarks remarks(kTen, false), other(kTen, false);
  remarks.add("a", std::vector<float>{7, 7, 7});
  remarks.add("", std::vector<float>{NAN, 1, NAN, 3}, 2);
  other.add("b", std::vector<float>{0.1f, 0.1f});
  other.add("c", std::vector<float>{1, NAN, NAN, 4});
  remarks.merge(std::move(other), [](std::string id) { return "file/" + id; });
  const Sentences found = remarks.about_data();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "leading missing values are dropped: 3 of the series");
  EXPECT_EQ(found[1],
            "3 missing values of 2 series are filled with the previous value; --missing linear "
            "interpolates, mask ignores");
  EXPECT_TRUE(found[2].starts_with("the series \"a\" and 1 more have always the same value"));
}

TEST(SeriesRemarks, AFixedScaleMayBeTooSmall) {
  ForecastOptions options = kTen;
  const std::vector<float> small = {0.01f, 0.02f, 0.01f, 0.03f};
  for (const double scale : {0.0, 1.0, 100.0}) {
    options.scale = scale;
    SeriesRemarks remarks(options, false);
    remarks.add("a", small);
    EXPECT_EQ(remarks.about_model(kFacts, options).size(), scale == 1 ? 1u : 0u) << scale;
  }
  options.scale = 0;
  options.horizon = 9;
  options.decode = Decode::mean;
  const Sentences found = SeriesRemarks(options, false).about_model(kFacts, options);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("--decode mean: from step 9 on the bands hold only if"));
}

TEST(ModelWarnings, SayThatAModelIsUntrained) {
  ModelInfo model;
  model.warnings = {"one"};
  EXPECT_EQ(model_warnings(model, "m"), Sentences{"one"});
  model.trained = false;
  ASSERT_EQ(model_warnings(model, "m").size(), 2u);
  EXPECT_TRUE(model_warnings(model, "m")[1].starts_with("the model m is untrained"));
}

}  // namespace
}  // namespace toto::tables
