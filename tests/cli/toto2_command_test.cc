// The command with a model of Toto 2.0: its own flags, what it reports, what it refuses.
#include "cli_fixture.h"

namespace toto::cli {
namespace {

constexpr const char* kModel = TOTO_SOURCE_DIR "/tests/golden/toto2_three_variates";

class Toto2CommandTest : public CliTest {
 protected:
  std::string series() {
    std::string text = "time,value\n";
    for (int t = 0; t < 31; ++t) text += fmt::format("2024-01-{:02},{}\n", 1 + t, 10 + t % 7);
    file("in.csv", text);
    return "in.csv";
  }
  std::string forecast(std::vector<std::string> flags) {
    std::vector<std::string> all = {"forecast",  series(), "--model", kModel,
                                    "--horizon", "20",     "--json",  "f.json"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Result result = run(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    err_ = result.err;
    const std::string text = contents_of(folder_ / "f.json");
    return text.substr(text.find("\"series\""),
                       text.find("\"timings_ms\"") - text.find("\"series\""));
  }
  std::string err_;
};

TEST_F(Toto2CommandTest, FlagsChangeTheForecast) {
  const std::string usual = forecast({});
  const std::string json = contents_of(folder_ / "f.json");
  EXPECT_NE(json.find("\"mean_is\": \"median\""), std::string::npos);
  EXPECT_NE(json.find("\"samples_are\": \"marginal\""), std::string::npos);
  EXPECT_EQ(err_.find("sampled paths"), std::string::npos) << "every step is exact";
  EXPECT_NE(forecast({"--block", "8"}), usual);
  EXPECT_EQ(forecast({"--block", "24"}), usual) << "the whole horizon";
  EXPECT_EQ(forecast({"--strict-quantiles"}), usual);
  EXPECT_NE(forecast({"--dtype", "f16"}), usual);
  forecast({"--raw"});
}

TEST_F(Toto2CommandTest, WarnsOfTailsOrRefusesThem) {
  forecast({"--quantiles", "0.05,0.5"});
  EXPECT_NE(err_.find("0.05 is extrapolated"), std::string::npos) << err_;
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--quantiles", "0.05", "--strict-quantiles"},
                                             {"--block", "12"},
                                             {"--decode", "mean"},
                                             {"--dtype", "int8"},
                                             {"--mode", "reference", "--no-kv-cache"}}) {
    std::vector<std::string> all = {"forecast", series(), "--model", kModel};
    all.insert(all.end(), flags.begin(), flags.end());
    EXPECT_EQ(run(all).exit_code, 2) << flags[0];
  }
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--raw"}, {"--block", "24"}, {"--strict-quantiles"}}) {
    std::vector<std::string> all = {"forecast", series()};
    all.insert(all.end(), flags.begin(), flags.end());
    EXPECT_EQ(run(all).exit_code, 2) << "a model of Toto 1.0 with " << flags[0];
  }
}

TEST_F(Toto2CommandTest, IsInspectedAndMade) {
  EXPECT_EQ(run({"inspect", kModel, "--json", "i.json"}).exit_code, 0);
  const std::string report = contents_of(folder_ / "i.json");
  for (const char* part :
       {"\"architecture\": \"toto2\"", "\"exact_steps\": null", "\"quantile_levels\": [0.1, 0.2",
        "\"mean_is\": \"median\"", "\"dtype\": \"f16\""}) {
    EXPECT_NE(report.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(run({"make-model", "made", "--config", "toto2-4m"}).exit_code, 0);
  EXPECT_EQ(run({"forecast", series(), "--model", "made", "--horizon", "3"}).exit_code, 0);
}

}  // namespace
}  // namespace toto::cli
