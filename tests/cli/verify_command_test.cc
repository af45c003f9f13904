// `toto verify` as a user runs it: exit codes, the JSON that scripts read, the report, the table.
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
  for (const char* key : {"version", "date", "host", "cpu", "isa", "dtype"}) {
    EXPECT_FALSE(at(json, key).string.empty()) << key;
  }
  EXPECT_GE(at(json, "threads").integer, 1);
  EXPECT_EQ(at(json, "seed").integer, 0);
  const io::Json& checked = at(json, "goldens").array.at(0);
  EXPECT_EQ(at(checked, "weights_sha256").string.size(), 64U);
  EXPECT_TRUE(has(result.out, "weights " + at(checked, "weights_sha256").string)) << result.out;
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
  refused("empty", {"empty", "has no golden"});
  // One that is in order does not make up for one that is missing.
  expect_refusal(3, {"nowhere"},
                 {"verify", "--golden", golden("fused_mlp"), "nowhere", "--golden-only"});

  const std::string copy = copied_golden(folder_, "fused_mlp");
  const std::string bytes = contents_of(copy + "/case.safetensors");
  refused(golden("fused_mlp") + "/config.json", {"is not a folder"});
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

// A golden made on the machine with PyTorch, and what serves on this one.
TEST_F(VerifyCommandTest, HoldsTheNamedModelToTheGolden) {
  const auto verify = [&](const std::string& model, const std::string& where) {
    return run({"verify", "--golden", where, "--golden-only", "--modes", "default,reference",
                "--model", model, "--json", "-"});
  };
  const std::string serving = copied_golden(folder_, "fused_mlp");
  std::filesystem::remove(serving + "/case.safetensors");
  const Result same = verify(serving, golden("fused_mlp"));
  EXPECT_EQ(same.exit_code, 0) << same.out;
  const io::Json json = json_of(same);
  const io::Json& checked = at(json, "goldens").array.at(0);
  EXPECT_EQ(at(checked, "name").string, "fused_mlp");
  EXPECT_EQ(at(checked, "model").string, serving);
  const Result sum = shell("sha256sum " + serving + "/model.safetensors | cut -c1-64");
  EXPECT_EQ(at(checked, "weights_sha256").string + "\n", sum.out);

  EXPECT_EQ(verify(golden("exogenous"), golden("fused_mlp")).exit_code, 1) << "another model";
  EXPECT_EQ(verify("toto-mini", golden("fused_mlp")).exit_code, 1) << "of another shape";
  expect_refusal(3, {"/nope"},
                 {"verify", "--golden", golden("fused_mlp"), "--golden-only", "--model", "/nope"});
  // Only a flag names the model to verify: a variable may be set in a profile for years.
  EXPECT_EQ(run({"verify", "--golden", golden("fused_mlp"), "--golden-only", "--modes", "default"},
                {{"TOTO_MODEL_ID", "toto-mini"}})
                .exit_code,
            0);

  // Links to a checkpoint that is on the other machine.
  const std::string moved = path("moved");
  std::filesystem::create_directories(moved);
  std::filesystem::copy(golden("fused_mlp") + "/case.safetensors", moved + "/case.safetensors");
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::create_symlink(std::string("/not/here/") + name, moved + "/" + name);
  }
  EXPECT_EQ(verify(serving, moved).exit_code, 0);
  expect_refusal(3, {"moved/config.json", "link to /not/here/config.json", "--model", "--copy"},
                 {"verify", "--golden", moved, "--golden-only"});
}

TEST_F(VerifyCommandTest, CatchesAndNamesWeightsThatAreGone) {
  const std::string serving = copied_golden(folder_, "fused_mlp");
  TensorFile file(serving + "/model.safetensors");
  std::string lost;
  for (TensorFile::Tensor& tensor : file.tensors) {
    if (tensor.info.name.find("wO.weight") == std::string::npos) continue;
    tensor.edit<float>([](float& x) { x = 0; });
    lost = tensor.info.name;
  }
  ASSERT_FALSE(lost.empty());
  file.save();
  const Result result = run({"verify", "--golden", golden("fused_mlp"), "--golden-only", "--modes",
                             "default", "--model", serving, "--report", "v.md", "--json", "-"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_TRUE(has(result.err, "only zeros: ") && has(result.err, lost)) << result.err;
  EXPECT_EQ(at(io::parse_json(result.out, "stdout"), "warnings").array.size(), 1U);
  EXPECT_TRUE(has(contents_of(path("v.md")), "only zeros"));
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

// An active rollback must not narrow what is verified.
TEST_F(VerifyCommandTest, LooksAtEveryModeWhateverTheVariablesSay) {
  const Result result = run({"verify", "--golden", golden("fused_mlp"), "--golden-only"},
                            {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_COMPILE_MODE", "reference"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "golden/fused_mlp/default/mean"));
}

TEST_F(VerifyCommandTest, VerifiesTheBundledModel) {
  const Result result =
      run({"verify", "--json", "-", "--progress"}, {{"ASAN_OPTIONS", "quarantine_size_mb=1"}});
  const io::Json json = json_of(result);
  EXPECT_TRUE(at(json, "passed").boolean) << result.out;
  int production = 0;
  for (const io::Json& check : at(json, "checks").array) {
    production += at(check, "name").string.starts_with("production/") ? 1 : 0;
  }
  EXPECT_EQ(production, 11);
  EXPECT_TRUE(has(result.err, "verify: 100 %")) << result.err;
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
  EXPECT_TRUE(testing::eventually([&] { return has(running.err_so_far(), "verify: "); }));
  kill(running.pid(), SIGINT);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("v.json")));
}

}  // namespace
}  // namespace toto::cli
