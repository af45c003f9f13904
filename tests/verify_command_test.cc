// `toto verify` as a user runs it: exit codes, the JSON that scripts read, the report, the table.
#include <chrono>
#include <set>

#include "cli_fixture.h"
#include "golden_fixture.h"

namespace toto::cli {
namespace {

using validate::copied_golden;
using validate::kCommittedGoldens;
using validate::TensorFile;

class VerifyCommandTest : public CliTest {
 protected:
  static std::string golden(const std::string& name) {
    return std::string(kCommittedGoldens) + "/" + name;
  }

  // A copy with float64 means that are not what float64 gives.
  std::string tampered_golden() {
    const std::string copy = copied_golden(folder_, "fused_mlp");
    TensorFile file(copy + "/case.safetensors");
    file["f64.mean"].edit<double>([](double& value) { value *= 1.0005; });
    file.save();
    return copy;
  }
};

TEST_F(VerifyCommandTest, ChecksGoldensAloneAndSaysSoInJson) {
  const Result result = run({"verify", "--golden", golden("fused_mlp"), golden("exogenous"),
                             "--golden-only", "--json", "-"});
  const io::Json json = json_of(result);
  EXPECT_TRUE(at(json, "passed").boolean);
  EXPECT_EQ(result.err, "");
  std::set<std::string> names;
  for (const io::Json& check : at(json, "checks").array) {
    names.insert(at(check, "name").string);
    EXPECT_TRUE(at(check, "passed").boolean);
    EXPECT_TRUE(at(check, "figure").is_number());
    EXPECT_TRUE(at(check, "bound").is_number());
    EXPECT_LE(at(check, "figure").real, at(check, "bound").real);
  }
  EXPECT_EQ(names.size(), 2 * (8 + 3 * 7 + 1U));  // four modes, one of them without a cache too
  EXPECT_TRUE(names.contains("golden/exogenous/default/component_scale"));
  EXPECT_TRUE(names.contains("golden/fused_mlp/reference/mean_no_cache"));
}

TEST_F(VerifyCommandTest, PrintsATableAndWritesBothReports) {
  const Result result = run({"verify", "--golden", golden("fused_mlp"), "--golden-only", "--modes",
                             "default", "--json", "new/folder/v.json", "--report", "new/v.md"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "PASSED: 8 of 8 checks passed\n")) << result.out;
  EXPECT_TRUE(has(result.out, "pass  golden/fused_mlp/default/mean "));
  EXPECT_FALSE(has(result.out, "/reference/"));
  const io::Json json = io::parse_json(contents_of(path("new/folder/v.json")), "v.json");
  EXPECT_EQ(at(json, "checks").array.size(), 8U);
  const std::string report = contents_of(path("new/v.md"));
  EXPECT_TRUE(has(report, "# toto verify"));
  EXPECT_TRUE(has(report, "| golden/fused\\_mlp/default/mean | pass |")) << report;
}

TEST_F(VerifyCommandTest, ExitsWithOneIfACheckDoesNotHold) {
  const std::string copy = tampered_golden();
  const Result result =
      run({"verify", "--golden", copy, "--golden-only", "--json", "v.json", "--report", "v.md"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(has(result.out, "FAIL  plausible/fused_mlp"));
  EXPECT_TRUE(has(result.out, "FAILED: "));
  EXPECT_FALSE(at(io::parse_json(contents_of(path("v.json")), "v.json"), "passed").boolean);
  EXPECT_TRUE(has(contents_of(path("v.md")), "**FAILED: "));
}

TEST_F(VerifyCommandTest, RefusesGoldensThatAreNotThereOrNoEvidence) {
  std::filesystem::create_directories(path("empty"));
  const auto refused = [&](const std::string& where,
                           std::initializer_list<std::string_view> fragments) {
    expect_refusal(3, fragments,
                   {"verify", "--golden", where, "--golden-only", "--json", "v.json"});
  };
  refused("nowhere", {"nowhere", "no such folder"});
  refused("empty", {"empty", "holds no golden"});
  // One that is in order does not make up for one that is missing.
  expect_refusal(3, {"nowhere"},
                 {"verify", "--golden", golden("fused_mlp"), "nowhere", "--golden-only"});

  const std::string copy = copied_golden(folder_, "fused_mlp");
  const std::string bytes = contents_of(copy + "/case.safetensors");
  refused(golden("fused_mlp") + "/config.json", {"is no folder"});
  {
    TensorFile file(copy + "/case.safetensors");
    file.remove("f64.mean");
    file.save();
    refused(copy, {"case.safetensors", "f64.mean", "missing"});
  }
  put(copy + "/case.safetensors", bytes.substr(0, bytes.size() - 1));
  refused(copy, {"case.safetensors"});
  put(copy + "/case.safetensors", bytes);
  const std::string weights = contents_of(copy + "/model.safetensors");
  put(copy + "/model.safetensors", weights.substr(0, weights.size() - 1));
  refused(copy, {"model.safetensors"});
  std::filesystem::remove(copy + "/config.json");
  put(copy + "/model.safetensors", weights);
  refused(copy, {"config.json"});
}

TEST_F(VerifyCommandTest, WrongUsageExitsWithTwo) {
  expect_refusal(2, {"unknown mode \"turbo\"", "max-autotune"}, {"verify", "--modes", "turbo"});
  expect_refusal(2, {"--modes"}, {"verify", "--modes", "default,"});
  expect_refusal(2, {"--golden-only needs --golden"}, {"verify", "--golden-only"});
  expect_refusal(2, {"--no-kv-cache"}, {"verify", "--no-kv-cache"});
  expect_refusal(2, {"--modes and --mode"},
                 {"verify", "--modes", "default", "--mode", "reference"});
  expect_refusal(2, {"--report"}, {"verify", "--report", "-"});
  expect_refusal(2, {"turbo"}, {"verify", "--dtype", "turbo"});
  file("a-file", "");
  expect_refusal(2, {"a-file", "cannot be written"}, {"verify", "--json", "a-file/v.json"});
  expect_refusal(3, {"no-such-model"}, {"verify", "--model", "no-such-model"});
}

TEST_F(VerifyCommandTest, EveryModeAnswersToAGolden) {
  const Result result = run({"verify", "--golden", golden("fused_mlp"), "--golden-only"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  for (const std::string mode : {"reference", "default", "reduce-overhead", "max-autotune"}) {
    EXPECT_TRUE(has(result.out, "pass  golden/fused_mlp/" + mode + "/mean")) << result.out;
  }
}

TEST_F(VerifyCommandTest, Float64IsHeldToADoublesError) {
  const Result result =
      run({"verify", "--golden", golden("fused_mlp"), "--golden-only", "--dtype", "f64"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(has(result.out, "PASSED: 8 of 8 checks passed")) << result.out;
}

// A rollback in force must not narrow what is verified.
TEST_F(VerifyCommandTest, LooksAtEveryModeWhateverTheVariablesSay) {
  const Result result = run({"verify", "--golden", golden("fused_mlp"), "--golden-only"},
                            {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_COMPILE_MODE", "reference"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "golden/fused_mlp/default/mean"));
}

TEST_F(VerifyCommandTest, VerifiesTheBundledModelInUnderAMinute) {
  const auto start = std::chrono::steady_clock::now();
  const Result result =
      run({"verify", "--json", "-", "--progress"}, {{"ASAN_OPTIONS", "quarantine_size_mb=1"}});
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const io::Json json = json_of(result);
  EXPECT_TRUE(at(json, "passed").boolean) << result.out;
  int production = 0;
  for (const io::Json& check : at(json, "checks").array) {
    production += at(check, "name").string.starts_with("production/") ? 1 : 0;
  }
  EXPECT_EQ(production, 11);
  EXPECT_TRUE(has(result.err, "verify: 100 %")) << result.err;
  EXPECT_LT(time.count(), 60);
}

TEST_F(VerifyCommandTest, HelpHasAnExample) {
  const Result result = run({"verify", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word :
       {"--golden", "--golden-only", "--modes", "--json", "--report", "Example"}) {
    EXPECT_TRUE(has(result.out, word)) << word;
  }
}

TEST_F(VerifyCommandTest, StopsOnInterrupt) {
  const Running running = start({"verify", "--progress", "--json", "v.json"});
  for (int i = 0; i < 30'000 && !has(running.err_so_far(), "verify: "); ++i) usleep(1000);
  kill(running.pid(), SIGINT);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("v.json")));
}

}  // namespace
}  // namespace toto::cli
