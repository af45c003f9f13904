// The command as a whole: help, wrong usage, settings and their variables, what the shell sees.
#include "settings_fixture.h"

#include "base/threads.h"

namespace toto::cli {
namespace {

const std::vector<std::string> kCommands = {"forecast",    "backtest", "verify",
                                            "analyze-log", "bench",    "inspect",
                                            "make-model",  "config",   "doctor"};

TEST_F(CliTest, HelpListsEveryCommand) {
  const Result result = run({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const std::string& command : kCommands) EXPECT_TRUE(has(result.out, command)) << command;
  EXPECT_EQ(run({"--version"}).out, "toto " + std::string(version()) + "\n");
}

TEST_F(CliTest, EveryCommandHasHelpWithAnExampleAndTakesJson) {
  for (const std::string& command : kCommands) {
    const Result result = run({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_TRUE(has(result.out, "Example:\n  toto " + command)) << result.out;
    EXPECT_TRUE(has(result.out, "--json")) << command;
  }
  for (const char* variable :
       {"TOTO_MODEL_ID", "TOTO_COMPILE_MODE", "TOTO_DTYPE", "TOTO_THREADS", "TOTO_ISA", "TOTO_SEED",
        "TOTO_NUM_SAMPLES", "TOTO_AGGREGATION_SPEC", "TOTO_DISABLE_COMPILE"}) {
    EXPECT_TRUE(has(run({"forecast", "--help"}).out, variable)) << variable;
  }
}

TEST_F(CliTest, HelpAndVersionAreAlsoCommands) {
  EXPECT_EQ(run({}).out, run({"--help"}).out);
  EXPECT_EQ(run({}).exit_code, 0);
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "eval"}).out, run({"eval", "--help"}).out);
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
  expect_refusal(2, {"unknown command \"forcast\"", "forecast"}, {"help", "forcast"});
}

TEST_F(CliTest, WrongUsageIsOneSentence) {
  expect_refusal(2, {"unknown command \"forcast\"", "forecast, "}, {"forcast"});
  expect_refusal(2, {"INPUT is required", "toto forecast --help"}, {"forecast"});
  expect_refusal(2, {"--bogus"}, {"forecast", "x.csv", "--bogus"});
  expect_refusal(2, {"MODEL is required"}, {"inspect"});
  expect_refusal(2, {"OUTPUT_DIR is required"}, {"make-model"});
  // Line breaks from the command line do not break the sentence.
  const Result result = run({"forecast", "no\nsuch.csv"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST_F(CliTest, NearMissesAreNamed) {
  expect_refusal(2, {"unknown option \"--horizn\"; did you mean --horizon?\n"},
                 {"forecast", "x.csv", "--horizn", "5"});
  // Also where its value was taken for the input, or the input is not there.
  expect_refusal(2, {"did you mean --horizon?"}, {"forecast", "--horizn", "5"});
  expect_refusal(2, {"unknown option \"--horizn\"", "--horizon?"}, {"forecast", "--horizn=5"});
  expect_refusal(2, {"did you mean --threads?"}, {"bench", "--thread", "2"});
  expect_refusal(2, {"unknown option \"--verison\"", "--version?"}, {"--verison"});
  expect_refusal(2, {"the commands are forecast", "; did you mean forecast?"},
                 {"forcast", "x.csv"});
  expect_refusal(2, {"--mode: unknown mode \"refernce\"", "did you mean reference?"},
                 {"forecast", "x.csv", "--mode", "refernce"});
  expect_refusal(2, {"TOTO_DTYPE: unknown dtype", "did you mean bf16?"}, {"forecast", "x.csv"},
                 {{"TOTO_DTYPE", "bf-16"}});
  expect_refusal(2, {"--isa: unknown isa", "did you mean avx2?"}, {"bench", "--isa", "avx-2"});
  // Nothing near: nothing is guessed.
  const std::string far = error_line(run({"forecast", "x.csv", "--bogus"}));
  EXPECT_EQ(far, "error: unknown option \"--bogus\"; see `toto forecast --help`\n");
}

TEST_F(SettingsTest, ModeComesFromFlagThenVariablesThenDefault) {
  EXPECT_EQ(mode({}), "default");
  EXPECT_EQ(mode({{"TOTO_COMPILE_MODE", "reference"}}), "reference");
  EXPECT_EQ(mode({{"TORCH_COMPILE_MODE", "reference"}}), "reference");
  EXPECT_EQ(mode({{"TOTO_COMPILE_MODE", "default"}, {"TORCH_COMPILE_MODE", "reference"}}),
            "default");
  EXPECT_EQ(mode({{"TOTO_COMPILE", "0"}, {"TOTO_COMPILE_MODE", "default"}}), "reference");
  EXPECT_EQ(mode({{"TOTO_COMPILE", "1"}}), "default");
  EXPECT_EQ(mode({{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_COMPILE", "1"}}), "reference");
  EXPECT_EQ(mode({{"TOTO_DISABLE_COMPILE", "0"}}), "default");
  EXPECT_EQ(mode({{"TOTO_DISABLE_COMPILE", "1"}}, {"--mode", "default"}), "default");
  EXPECT_EQ(mode({{"TOTO_COMPILE_MODE", ""}}), "default") << "empty is not set";
  // The rollback works whatever else is wrong.
  EXPECT_EQ(mode({{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_COMPILE_MODE", "nonsense"}}), "reference");
}

TEST_F(SettingsTest, WrongVariablesAreNamed) {
  expect_wrong({{"TOTO_DISABLE_COMPILE", "maybe"}}, "\"maybe\", expected 1 or 0");
  expect_wrong({{"TOTO_COMPILE", "2"}}, "expected 1 or 0");
  expect_wrong({{"TOTO_COMPILE_MODE", "fast"}},
               "reference, default, reduce-overhead, max-autotune");
  expect_wrong({{"TORCH_COMPILE_MODE", "fast"}}, "the choices are");
  expect_wrong({{"TOTO_COMPILE_BACKEND", "cuda"}}, "expected native or inductor");
  expect_wrong({{"TOTO_THREADS", "many"}}, "\"many\", expected a whole number from 1");
  expect_wrong({{"TOTO_THREADS", "0"}}, "expected a whole number from 1");
  expect_wrong({{"TOTO_ISA", "sse"}}, "auto, reference, avx2, avx512");
  expect_wrong({{"TOTO_DTYPE", "float"}}, "f32, f64, f16, bf16, int8");
  expect_wrong({{"TOTO_SEED", "-1"}}, "expected a whole number from 0");
  expect_wrong({{"TOTO_NUM_SAMPLES", "1000000000"}}, "from 1 to 1000000");
  expect_wrong({{"TOTO_AGGREGATION_SPEC", "best"}}, "trimmed_mean_P");
  // What only the engine can refuse is traced to its variable as well.
  const Result result = forecast({}, {{"TOTO_DTYPE", "f64"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(has(error_line(result), "TOTO_DTYPE is set to f64")) << result.err;
}

TEST_F(SettingsTest, VariablesAreDefaults) {
  for (const char* backend : {"native", "inductor"}) {
    EXPECT_EQ(forecast({}, {{"TOTO_COMPILE_BACKEND", backend}}).exit_code, 0);
  }
  const io::Json json = json_of(forecast({}, {{"TOTO_SEED", "18446744073709551615"},
                                              {"TOTO_THREADS", "1"},
                                              {"TOTO_ISA", "reference"},
                                              {"TOTO_DTYPE", "f32"},
                                              {"TOTO_MODEL_ID", "toto-mini"},
                                              {"TOTO_AGGREGATION_SPEC", "median"}}));
  const io::Json& engine = at(json, "engine");
  EXPECT_EQ(at(engine, "seed").real, 18446744073709551615.0);
  EXPECT_EQ(at(engine, "threads").integer, 1);
  EXPECT_EQ(at(engine, "isa").string, "reference");
  EXPECT_EQ(at(engine, "model").string, "toto-mini");
  const io::Json& series = at(json, "series").array.at(0);
  EXPECT_EQ(at(series, "point").array.size(), 3u);
  const Result missing = forecast({}, {{"TOTO_MODEL_ID", "absent/model"}});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_TRUE(has(error_line(missing), "absent/model")) << missing.err;
  // A flag wins.
  EXPECT_EQ(
      at(at(json_of(forecast({"--seed", "7"}, {{"TOTO_SEED", "nonsense"}})), "engine"), "seed")
          .integer,
      7);
}

TEST_F(SettingsTest, SamplesVariableMeansSamples) {
  const Result plain = forecast({"--emit", "samples"});
  const Result by_variable = forecast({"--emit", "samples"}, {{"TOTO_NUM_SAMPLES", "5"}});
  const Result by_flag = forecast({"--emit", "samples", "--samples", "5"});
  const auto samples = [&](const Result& result) -> std::size_t {
    return at(at(json_of(result), "series").array.at(0), "samples").array.size();
  };
  EXPECT_EQ(samples(plain), 256u);
  EXPECT_EQ(samples(by_variable), 5u);
  EXPECT_EQ(samples(by_flag), 5u);
  // A default does not conflict with --decode mean, a flag does.
  EXPECT_EQ(forecast({"--decode", "mean"}, {{"TOTO_NUM_SAMPLES", "5"}}).exit_code, 0);
  expect_refusal(2, {"--decode mean"},
                 {"forecast", "in.csv", "--decode", "mean", "--samples", "5"});
}

TEST_F(SettingsTest, ThreadsAboveTheCoresWarn) {
  const int cores = usable_cores();
  EXPECT_FALSE(has(forecast({"--threads", "1"}).err, "usable cores"));
  const Result result = forecast({"--threads", std::to_string(4 * cores)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "warning: --threads is " + std::to_string(4 * cores) +
                                  ", more than the " + std::to_string(cores)))
      << result.err;
  expect_refusal(2, {"--threads", "expected a whole number from 1 to " + std::to_string(4 * cores)},
                 {"forecast", "in.csv", "--threads", std::to_string(4 * cores + 1)});
  expect_refusal(2, {"--threads"}, {"forecast", "in.csv", "--threads", "0"});
}

TEST_F(SettingsTest, WhatDoesNotGoTogetherIsRefused) {
  for (const char* dtype : {"bf16", "int8"}) {
    EXPECT_EQ(forecast({"--dtype", dtype}).exit_code, 0);
    expect_refusal(2, {dtype, "mode reference takes"},
                   {"forecast", "in.csv", "--mode", "reference", "--dtype", dtype});
  }
  expect_refusal(2, {"f64", "--mode reference"}, {"forecast", "in.csv", "--dtype", "f64"});
  expect_refusal(2, {"KV cache", "--mode reference"}, {"forecast", "in.csv", "--no-kv-cache"});
  expect_refusal(2, {"--mode", "\"eager\""}, {"forecast", "in.csv", "--mode", "eager"});
  for (const Isa isa : all_isas()) {
    const std::string name(name_of(isa));
    if (isa_available(isa)) {
      EXPECT_EQ(forecast({"--isa", name}).exit_code, 0) << name;
    } else {
      expect_refusal(2, {"--isa is " + name, "use auto"}, {"forecast", "in.csv", "--isa", name});
    }
  }
}

// Nothing is read for a request that cannot be met: neither is there an input nor a model.
TEST_F(SettingsTest, WrongRequestsAreRefusedBeforeAnythingIsRead) {
  const std::vector<std::vector<std::string>> wrong = {{"--no-kv-cache"},
                                                       {"--dtype", "f64"},
                                                       {"--mode", "eager"},
                                                       {"--isa", "sse"},
                                                       {"--seed", "-1"}};
  for (const std::vector<std::string>& more : wrong) {
    for (const std::string command : {"forecast", "bench"}) {
      std::vector<std::string> words = {command, "--model", "absent"};
      if (command == "forecast") words.insert(words.begin() + 1, "absent.csv");
      words.insert(words.end(), more.begin(), more.end());
      expect_refusal(2, {}, words);
    }
  }
}

TEST_F(SettingsTest, ReferenceModeTakesFloat64AndTheUncachedPath) {
  const auto means = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"forecast",  "in.csv",   "--horizon", "40",     "--mode",
                                      "reference", "--decode", "mean",      "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const io::Json json = json_of(run(words));
    EXPECT_EQ(at(at(json, "engine"), "dtype").string, more.size() > 1 ? "f64" : "f32");
    std::vector<double> values;
    for (const io::Json& value : at(at(json, "series").array.at(0), "mean").array) {
      values.push_back(value.real);
    }
    return values;
  };
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), 40u);
    ASSERT_EQ(b.size(), 40u);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-3 * std::abs(b[i]));
  };
  const std::vector<double> cached = means({}), uncached = means({"--no-kv-cache"});
  EXPECT_NE(cached, uncached);
  expect_near(cached, means({"--dtype", "f64"}));
  expect_near(uncached, means({"--dtype", "f64", "--no-kv-cache"}));
  expect_refusal(2, {"--horizon"}, {"forecast", "in.csv", "--horizon", "3", "--horizon", "4"});
}

TEST_F(SettingsTest, SameBitsOnEveryThreadCountAndInstructionSet) {
  const auto series = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--samples", "8"});
    const std::string text = forecast(std::move(more)).out;
    return text.substr(text.find("\"series\""),
                       text.find("\"timings_ms\"") - text.find("\"series\""));
  };
  const std::string expected = series({});
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(series({"--threads", "1"}), expected);
  EXPECT_EQ(series({"--isa", "reference"}), expected);
}

}  // namespace
}  // namespace toto::cli
