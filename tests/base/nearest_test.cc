// Suggestions for misspelt names, and cases without one.
#include "base/nearest.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "toto/toto.h"

namespace toto {
namespace {

constexpr std::array<std::string_view, 6> kOptions = {"--help",   "--horizon",   "--json",
                                                      "--output", "--quantiles", "--seed"};
constexpr std::array<std::string_view, 3> kCommands = {"forecast", "verify", "make-model"};

std::string nearest_option(std::string_view word) {
  return std::string(nearest_name(word, kOptions).value_or("none"));
}

TEST(NearestName, FindsTypingErrors) {
  EXPECT_EQ(nearest_option("--horizn"), "--horizon");    // left out
  EXPECT_EQ(nearest_option("--horizzon"), "--horizon");  // added
  EXPECT_EQ(nearest_option("--horison"), "--horizon");   // changed
  EXPECT_EQ(nearest_option("--ouptut"), "--output");     // swapped
  EXPECT_EQ(nearest_option("--quantile"), "--quantiles");
  EXPECT_EQ(nearest_option("--JSON"), "--json");
  EXPECT_EQ(nearest_option("-seed"), "--seed");
  EXPECT_EQ(nearest_name("forcast", kCommands), "forecast");
  EXPECT_EQ(nearest_name("make_model", kCommands), "make-model");
}

TEST(NearestName, FindsAUniquePrefix) {
  EXPECT_EQ(nearest_option("--quant"), "--quantiles");
  EXPECT_EQ(nearest_option("--h"), "none") << "two begin so";
  EXPECT_EQ(nearest_name("fore", kCommands), "forecast");
}

TEST(NearestName, ReturnsNothingWithoutANearName) {
  for (const char* word : {"--bogus", "--x", "-", "--", "", "horizontal-lines"}) {
    EXPECT_EQ(nearest_option(word), "none") << word;
  }
  EXPECT_EQ(nearest_option(std::string(1 << 20, 'a')), "none");
  EXPECT_FALSE(nearest_name("forecast", {}));
  EXPECT_EQ(did_you_mean("nothing", kCommands), "");
  EXPECT_EQ(did_you_mean("verfy", kCommands), "; did you mean verify?");
}

TEST(NearestName, SuggestsChoices) {
  const auto sentence = [](const auto& parse, std::string_view name) -> std::string {
    try {
      parse(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(sentence(parse_mode, "reduce_overhead"),
            "unknown mode \"reduce_overhead\"; the choices are reference, default, "
            "reduce-overhead, max-autotune; did you mean reduce-overhead?");
  EXPECT_EQ(sentence(parse_dtype, "fp32"),
            "unknown dtype \"fp32\"; the choices are f32, f64, f16, bf16, int8; did you mean f32?");
  EXPECT_TRUE(sentence(parse_isa, "AVX-512").ends_with("; did you mean avx512?"));
  EXPECT_TRUE(sentence(parse_isa, "sse").ends_with("auto, reference, avx2, avx512"));
  EXPECT_TRUE(sentence(parse_missing, "fill").ends_with("; did you mean ffill?"));
}

}  // namespace
}  // namespace toto
