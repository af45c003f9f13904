// The command with one more row in its table of architectures; nothing else differs.
#include "cli_fixture.h"

namespace toto::cli {
namespace {

constexpr const char* kGolden = TOTO_SOURCE_DIR "/tests/linear_patches/golden/linear";

class LinearCommandTest : public CliTest {
 protected:
  LinearCommandTest() { command_ = TOTO_LINEAR_COMMAND; }
  std::string series() {
    std::string text = "time,value\n";
    for (int t = 0; t < 31; ++t) text += fmt::format("2024-01-{:02},{}\n", 1 + t, 10 + t % 7);
    file("in.csv", text);
    return "in.csv";
  }
};

TEST_F(LinearCommandTest, Forecasts) {
  const Result result = run({"forecast", series(), "--model", kGolden, "--horizon", "19"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("sampled paths"), std::string::npos) << "every step is exact";
}

TEST_F(LinearCommandTest, VerifiesItsGoldenInEveryMode) {
  const Result result =
      run({"verify", "--golden", kGolden, "--golden-only", "--modes", "all", "--json", "r.json"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const std::string report = contents_of(folder_ / "r.json");
  for (const char* check : {"golden/linear/reference/raw", "golden/linear/default/quantiles",
                            "golden/linear/max-autotune/scale", "plausible/linear"}) {
    EXPECT_NE(report.find(check), std::string::npos) << check;
  }
}

TEST_F(LinearCommandTest, InspectsAndMakesModels) {
  const Result inspected = run({"inspect", kGolden, "--json", "i.json"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_NE(contents_of(folder_ / "i.json").find("\"architecture\": \"linear_patches\""),
            std::string::npos);
  EXPECT_NE(run({"inspect", kGolden}).out.find("5 quantiles a step"), std::string::npos);
  EXPECT_EQ(run({"make-model", "made", "--config", "linear"}).exit_code, 0);
  EXPECT_EQ(run({"forecast", series(), "--model", "made"}).exit_code, 0);
  EXPECT_EQ(run({"make-model", "toto", "--config", "mini"}).exit_code, 0) << "the other row";
}

}  // namespace
}  // namespace toto::cli
