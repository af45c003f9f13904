// One row more in the table of settings, and nothing else: it arrives by flag, variable, config
// file and HTTP, `toto config show` lists it, and Python gets its name and default.
#include "cli_fixture.h"
#include "server/protocol_v1.h"
#include "settings/forecast_settings.h"

namespace toto::cli {
namespace {

class OneMoreSettingTest : public CliTest {
 protected:
  OneMoreSettingTest() {
    command_ = TOTO_ONE_MORE_COMMAND;
    file("in.csv", wide_csv(80));
  }
  std::int64_t steps(const std::vector<std::string>& flags = {},
                     const Environment& environment = {}) {
    std::vector<std::string> words = {"forecast", "in.csv", "--json", "-"};
    words.insert(words.end(), flags.begin(), flags.end());
    return at(json_of(run(words, environment)), "horizon").integer;
  }
};

TEST_F(OneMoreSettingTest, ArrivesByFlagVariableAndFile) {
  EXPECT_EQ(steps(), ForecastOptions().horizon);
  file("toto.conf", "steps = 2\n");
  EXPECT_EQ(steps(), 2);
  EXPECT_EQ(steps({}, {{"TOTO_STEPS", "3"}}), 3);
  EXPECT_EQ(steps({"--steps", "4"}, {{"TOTO_STEPS", "3"}}), 4);
  expect_refusal(2, {"TOTO_STEPS is \"many\", expected a whole number from 1 to 100000"},
                 {"forecast", "in.csv"}, {{"TOTO_STEPS", "many"}});
  EXPECT_TRUE(has(run({"forecast", "--help"}).out, "another name of the horizon (default 64)"));
}

TEST_F(OneMoreSettingTest, IsShownWithItsOrigin) {
  file("toto.conf", "steps = 2\n");
  const Result shown = run({"config", "show", "--steps", "4"}, {{"TOTO_STEPS", "3"}});
  EXPECT_EQ(shown.err, "") << "the variable has a setting";
  EXPECT_TRUE(has(shown.out, "another name of the horizon; overrides 3 (TOTO_STEPS); overrides 2"))
      << shown.out;
  file("wrong.conf", "setps = 2\n");
  expect_refusal(2, {"unknown key \"setps\"", "did you mean steps?"},
                 {"config", "show", "--config", "wrong.conf"});
}

TEST_F(OneMoreSettingTest, ArrivesByHttp) {
  const auto prepared = [](const std::string& options) {
    return server::prepare_v1(
        io::parse_json(R"({"series": [{"values": [1, 2, 3]}])" + options + "}", "the body"), {});
  };
  EXPECT_EQ(prepared(R"(, "steps": 5)").options.horizon, 5);
  EXPECT_THROW(prepared(R"(, "steps": "5")"), Error);
  EXPECT_THROW(prepared(R"(, "step": 5)"), Error);
}

TEST_F(OneMoreSettingTest, SeparatesBatchesAndCachedForecasts) {
  EXPECT_TRUE(has(settings::forecast_key({.horizon = 7}), "steps 7\n"));
}

// python/bindings_settings.cc hands these to totocpp/_rows.py, for every row of the table.
TEST_F(OneMoreSettingTest, HasAPythonName) {
  const auto* row = settings::find(settings::forecast_fields(), "steps");
  ASSERT_NE(row, nullptr);
  EXPECT_NE(row->doors & settings::kPython, 0u);
  EXPECT_EQ(row->standard.integer, ForecastOptions().horizon);
}

}  // namespace
}  // namespace toto::cli
