// Flag, variable, config file, default: for every setting, on the commands that take it; and the
// files themselves.
#include <fmt/format.h>

#include <set>

#include "settings_fixture.h"
#include "toto/toto.h"

namespace toto::cli {
namespace {

struct Case {
  const char *key, *flag, *variable, *by_flag, *by_variable, *by_file;
};

constexpr Case kCases[] = {
    {"model", "--model", "TOTO_MODEL_ID", "flag-model", "variable-model", "file-model"},
    {"mode", "--mode", "TOTO_COMPILE_MODE", "reduce-overhead", "max-autotune", "reference"},
    {"mode", "--mode", "TORCH_COMPILE_MODE", "reduce-overhead", "max-autotune", "reference"},
    {"dtype", "--dtype", "TOTO_DTYPE", "f32", "bf16", "int8"},
    {"threads", "--threads", "TOTO_THREADS", "1", "2", "3"},
    {"isa", "--isa", "TOTO_ISA", "reference", "reference", "reference"},
    {"seed", "--seed", "TOTO_SEED", "1", "2", "3"},
    {"plan-cache-size", "--plan-cache-size", "TORCHDYNAMO_CACHE_SIZE_LIMIT", "1", "2", "3"},
    {"plan-cache-size", "--plan-cache-size", "TORCHDYNAMO_RECOMPILE_LIMIT", "1", "2", "3"},
    {"samples", "--samples", "TOTO_NUM_SAMPLES", "1", "2", "3"},
    {"point", "--point", "TOTO_AGGREGATION_SPEC", "mean", "median", "quantile_0.3"},
    {"cache-dir", "--cache-dir", "TOTO_CACHE_DIR", "by-flag", "by-variable", "by-file"},
    {"ci-multiplier", "--ci-multiplier", "TOTO_CI_GUARD_MULTIPLIER", "0.5", "1.5", "2"},
};

TEST_F(SettingsTest, AFlagWinsOverAVariableOverTheFileOverTheDefault) {
  for (const Case& c : kCases) {
    file("toto.conf", fmt::format("# settings\n\n{} = {}\n", c.key, c.by_file));
    using Pair = std::pair<std::string, std::string>;
    EXPECT_EQ(shown(c.key, {c.flag, c.by_flag}, {{c.variable, c.by_variable}}),
              Pair(c.by_flag, c.flag));
    EXPECT_EQ(shown(c.key, {}, {{c.variable, c.by_variable}}), Pair(c.by_variable, c.variable));
    EXPECT_EQ(shown(c.key), Pair(c.by_file, fmt::format("toto.conf:3: {}", c.key)));
    // An empty variable is not set.
    EXPECT_EQ(shown(c.key, {}, {{c.variable, ""}}).first, c.by_file);
    std::filesystem::remove(path("toto.conf"));
    EXPECT_EQ(shown(c.key).second, "default") << c.key;
  }
}

// PyTorch's spellings are accepted, and reported as ours.
TEST_F(SettingsTest, AcceptsPyTorchsNames) {
  EXPECT_EQ(shown("dtype", {"--dtype", "bfloat16"}).first, "bf16");
  EXPECT_EQ(shown("dtype", {}, {{"TOTO_DTYPE", "float32"}}).first, "f32");
  EXPECT_EQ(shown("mode", {}, {{"TORCH_COMPILE_MODE", "max-autotune-no-cudagraphs"}}).first,
            "max-autotune");
}

TEST_F(SettingsTest, VariablesWithoutAFlagAndKeysWithoutAVariable) {
  file("toto.conf",
       "backend = inductor\nlogs = plans\ncapture-scalar-outputs = 1\nno_cache = yes\n"
       "mode = reference\nno-kv-cache = 1\n");
  EXPECT_EQ(shown("backend").first, "inductor");
  EXPECT_EQ(shown("backend", {}, {{"TOTO_COMPILE_BACKEND", "native"}}).first, "native");
  EXPECT_EQ(shown("logs").first, "plans");
  EXPECT_EQ(shown("capture-scalar-outputs").first, "1");
  EXPECT_EQ(shown("no-cache").first, "1");
  EXPECT_EQ(shown("no-kv-cache").second, "toto.conf:6: no-kv-cache");
  EXPECT_TRUE(has(run({"config", "show"}).out, "accepted without effect"));
}

// The variable is the rollback that only a flag undoes; a file's switch does not undo a variable.
TEST_F(SettingsTest, SwitchesAndModes) {
  using Pair = std::pair<std::string, std::string>;
  file("toto.conf", "mode = max-autotune\n");
  EXPECT_EQ(shown("mode", {}, {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_COMPILE_MODE", "nonsense"}}),
            Pair("reference", "TOTO_DISABLE_COMPILE"));
  EXPECT_EQ(shown("mode", {"--mode", "default"}, {{"TOTO_DISABLE_COMPILE", "1"}}),
            Pair("default", "--mode"));
  EXPECT_EQ(shown("mode", {}, {{"TOTO_COMPILE", "0"}}), Pair("reference", "TOTO_COMPILE"));
  EXPECT_EQ(shown("mode", {}, {{"TOTO_COMPILE", "1"}}), Pair("max-autotune", "toto.conf:1: mode"));
  file("toto.conf", "disable-compile = 1\nmode = max-autotune\n");
  EXPECT_EQ(shown("mode"), Pair("reference", "toto.conf:1: disable-compile"));
  EXPECT_EQ(shown("mode", {}, {{"TOTO_DISABLE_COMPILE", "0"}}),
            Pair("max-autotune", "toto.conf:2: mode"));
  EXPECT_EQ(shown("mode", {}, {{"TOTO_COMPILE_MODE", "default"}}),
            Pair("default", "TOTO_COMPILE_MODE"));
}

// Whatever else is set: the rollback is for a bad day. One warning names the ignored values, and
// `show` and `status` report the active ones.
TEST_F(SettingsTest, NothingStopsTheRollback) {
  file("in.csv", wide_csv(80));
  const std::vector<std::string> forecast = {"forecast", "in.csv", "--horizon", "2", "--json", "-"};
  const auto expect_rolled_back = [&](const Environment& variables,
                                      const std::vector<std::string>& flags,
                                      std::string_view ignored) {
    Environment environment = variables;
    if (!environment.contains("TOTO_COMPILE")) environment["TOTO_DISABLE_COMPILE"] = "1";
    std::vector<std::string> words = forecast;
    words.insert(words.end(), flags.begin(), flags.end());
    const Result result = run(words, environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const io::Json engine = at(json_of(result), "engine");
    EXPECT_EQ(at(engine, "mode").string, "reference");
    EXPECT_EQ(at(engine, "dtype").string, "f32");
    EXPECT_EQ(result.err.find("forces reference mode"), result.err.rfind("forces reference mode"));
    EXPECT_TRUE(has(result.err, ignored)) << result.err;
    if (!flags.empty()) return;
    const Result status = run({"config", "status"}, environment);
    EXPECT_TRUE(has(status.out, "active: reference (TOTO_")) << status.out;
    EXPECT_TRUE(has(status.out, "dtype f32")) << status.out;
    EXPECT_TRUE(has(status.err, ignored)) << status.err;
    EXPECT_EQ(shown("dtype", {}, environment).first, "f32");
  };
  expect_rolled_back({{"TOTO_DTYPE", "bf16"}}, {}, "TOTO_DTYPE (\"bf16\")");
  expect_rolled_back({{"TOTO_DTYPE", "float"}}, {}, "TOTO_DTYPE (\"float\")");
  expect_rolled_back({{"TOTO_DTYPE", "int8"}, {"TOTO_COMPILE", "0"}}, {},
                     "TOTO_COMPILE forces reference mode; TOTO_DTYPE (\"int8\") is ignored");
  expect_rolled_back({}, {"--dtype", "bf16"}, "--dtype (\"bf16\")");
  expect_rolled_back({{"TOTO_COMPILE_BACKEND", "eager"}, {"TOTO_ISA", "sse9"}}, {},
                     "TOTO_COMPILE_BACKEND (\"eager\"), TOTO_ISA (\"sse9\") are ignored");
  if (!isa_available(Isa::avx512)) {
    expect_rolled_back({{"TOTO_ISA", "avx512"}}, {}, "TOTO_ISA (\"avx512\")");
  }
  expect_rolled_back({{"TOTO_THREADS", "x"}, {"TOTO_LOGS", "all"}}, {}, "TOTO_THREADS (\"x\")");
  expect_rolled_back({{"TORCHDYNAMO_CACHE_SIZE_LIMIT", "0"}}, {}, "TORCHDYNAMO_CACHE_SIZE_LIMIT");
  file("toto.conf", "dtype = int8\n");
  expect_rolled_back({}, {}, "toto.conf:1: dtype (\"int8\")");
  EXPECT_EQ(shown("dtype", {}, {{"TOTO_DISABLE_COMPILE", "1"}}).second, "TOTO_DISABLE_COMPILE");
  // float64 is what reference mode has: nothing to warn of.
  const Result exact = run(forecast, {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_DTYPE", "f64"}});
  EXPECT_EQ(at(at(json_of(exact), "engine"), "dtype").string, "f64");
  EXPECT_FALSE(has(exact.err, "ignored"));
  // Asked for both by flags, or with a misspelt flag, it is a mistake.
  std::vector<std::string> words = forecast;
  words.insert(words.end(), {"--mode", "reference", "--dtype", "bf16"});
  expect_refusal(2, {"mode reference takes dtype f32 or f64"}, words);
  words[words.size() - 1] = "bf61";
  expect_refusal(2, {"--dtype", "bf61"}, words, {{"TOTO_DISABLE_COMPILE", "1"}});
  // Without the switch a wrong value stays one.
  expect_refusal(2, {"TOTO_COMPILE_BACKEND"}, forecast, {{"TOTO_COMPILE_BACKEND", "eager"}});
  const Result refused = run({"config", "status"}, {{"TOTO_COMPILE_MODE", "reference"}});
  EXPECT_TRUE(has(refused.out, "active: none (mode reference takes")) << refused.out;
}

TEST_F(SettingsTest, NamesVariablesThatNothingReads) {
  const Environment typo = {{"TOTO_DISABLE_COMPLIE", "1"}, {"TOTO_EMPTY", ""}, {"TOTO_XYZ", "1"}};
  for (const char* action : {"show", "status"}) {
    const Result result = run({"config", action}, typo);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.err,
                    "\"TOTO_DISABLE_COMPLIE\" is set, but no setting has this name; did "
                    "you mean TOTO_DISABLE_COMPILE?"))
        << result.err;
    EXPECT_TRUE(has(result.err, "\"TOTO_XYZ\"")) << result.err;
    EXPECT_FALSE(has(result.err, "TOTO_EMPTY")) << result.err;
    const io::Json json = json_of(run({"config", action, "--json", "-"}, typo));
    EXPECT_EQ(at(json, "warnings").array.size(), 2u);
    EXPECT_EQ(run({"config", action}, {{"TOTO_SEED", "1"}}).err, "");
  }
  const Result doctor = run({"doctor"}, typo);
  EXPECT_TRUE(has(doctor.out, "did you mean TOTO_DISABLE_COMPILE?")) << doctor.out;
}

// A file's settings reach every command that computes something.
TEST_F(SettingsTest, EveryCommandHonoursTheFile) {
  file("in.csv", wide_csv(80));
  file("toto.conf", "mode = reference\nthreads = 1\nseed = 7\nisa = reference\nsamples = 3\n");
  const auto engine_of = [&](const std::vector<std::string>& words) {
    return at(json_of(run(words)), "engine");
  };
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"forecast", "in.csv", "--horizon", "2", "--json", "-"},
           {"bench", "--repeat", "1", "--warmup", "0", "--context", "32", "--json", "-"},
           {"eval", "in.csv", "--horizon", "2", "--windows", "1", "--json", "-"}}) {
    const io::Json engine = engine_of(words);
    EXPECT_EQ(at(engine, "mode").string, "reference") << words[0];
    EXPECT_EQ(at(engine, "threads").integer, 1) << words[0];
    EXPECT_EQ(at(engine, "seed").integer, 7) << words[0];
  }
  const Result samples =
      run({"forecast", "in.csv", "--horizon", "2", "--emit", "samples", "--json", "-"});
  EXPECT_EQ(at(at(json_of(samples), "series").array.at(0), "samples").array.size(), 3u);
  const io::Json made = json_of(run({"make-model", "made", "--config", "mini", "--json", "-"}));
  EXPECT_EQ(at(made, "seed").integer, 7);
  const Result doctor = run({"doctor"});
  EXPECT_TRUE(has(doctor.out, "reference (toto.conf:1: mode)")) << doctor.out;
  // And a wrong value is traced to its line.
  file("toto.conf", "threads = many\n");
  expect_refusal(2, {"toto.conf:1: threads is \"many\"", "expected a whole number"},
                 {"forecast", "in.csv"});
  file("toto.conf", "mode = fastest\n");
  expect_refusal(2, {"toto.conf:1: mode", "fastest", "reduce-overhead"}, {"bench"});
}

TEST_F(SettingsTest, TheFileIsTheOneNamedElseTheOneHereElseTheUsers) {
  std::filesystem::create_directories(path("conf/toto"));
  file("conf/toto/toto.conf", "seed = 3\n");
  const Environment user = {{"XDG_CONFIG_HOME", path("conf")}};
  EXPECT_EQ(shown("seed", {}, user).first, "3");
  file("toto.conf", "seed = 2\n");
  EXPECT_EQ(shown("seed", {}, user).first, "2");
  file("other", "seed = 1\n");
  EXPECT_EQ(shown("seed", {"--config", "other"}, user),
            (std::pair<std::string, std::string>("1", "other:1: seed")));
  expect_refusal(3, {"absent.conf", "no such file"}, {"config", "show", "--config", "absent.conf"});
  expect_refusal(2, {"--config"}, {"config", "show", "--config", ""});
}

TEST_F(SettingsTest, RefusesWhatItDoesNotUnderstand) {
  file("in.csv", wide_csv(10));
  const std::vector<std::pair<std::string, std::vector<std::string_view>>> cases = {
      {"thread = 1\n", {"toto.conf:1: unknown key \"thread\"", "did you mean threads?"}},
      {"seed = 1\nMODE = default\n", {"toto.conf:2: unknown key", "did you mean mode?"}},
      {"TOTO_DTPYE = f32\n", {"did you mean TOTO_DTYPE?"}},
      {"--seed = 1\n", {"unknown key \"--seed\""}},
      {"seed 1\n", {"toto.conf:1: holds \"seed 1\"", "KEY = VALUE"}},
      {"seed =\n", {"seed has no value"}},
      {"seed = # none\n", {"seed has no value"}},
      {"model = \"a\n", {"closing quote"}},
      {"seed = 1\nTOTO_SEED = 2\n", {"toto.conf:2: TOTO_SEED is set a second time", "toto.conf:1"}},
      {std::string("\0\1\2=3", 6), {"unknown key"}},
  };
  for (const auto& [text, fragments] : cases) {
    file("toto.conf", text);
    const Result result = run({"forecast", "in.csv"});
    EXPECT_EQ(result.exit_code, 2) << text;
    for (const std::string_view fragment : fragments) {
      EXPECT_TRUE(has(error_line(result), fragment)) << result.err;
    }
    const Result doctor = run({"doctor"});  // tells it, and looks at everything else
    EXPECT_EQ(doctor.exit_code, 1);
    EXPECT_TRUE(has(doctor.out, "toto.conf:")) << doctor.out;
    EXPECT_TRUE(has(doctor.out, "instruction set"));
  }
}

TEST_F(SettingsTest, ReadsWhatPeopleWrite) {
  file("toto.conf",
       "\xEF\xBB\xBF# mine\r\n  seed=5   # lucky\r\n\r\nexport TOTO_THREADS=\"1\"\r\n"
       "plan_cache_size = '9'  # plans\r\n");
  EXPECT_EQ(shown("seed").first, "5");
  EXPECT_EQ(shown("threads"),
            (std::pair<std::string, std::string>("1", "toto.conf:4: TOTO_THREADS")));
  EXPECT_EQ(shown("plan-cache-size").first, "9");
}

TEST_F(SettingsTest, ShowTellsWhoIsOverruled) {
  file("toto.conf", "seed = 3\n");
  const Result result = run({"config", "show", "--seed", "1"}, {{"TOTO_SEED", "2"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(has(result.out, "overrides 2 (TOTO_SEED); overrides 3 (toto.conf:1: seed)"))
      << result.out;
  EXPECT_EQ(run({"config"}).out, run({"config", "show"}).out);
  // Every row has a value and says where it comes from.
  const io::Json json = json_of(run({"config", "show", "--json", "-"}));
  EXPECT_EQ(at(json, "file").string, "toto.conf");
  std::set<std::string> names;
  for (const io::Json& row : at(json, "settings").array) {
    EXPECT_FALSE(at(row, "value").string.empty() || at(row, "origin").string.empty());
    names.insert(at(row, "name").string);
  }
  EXPECT_EQ(names.size(), 39u);
}

// -------------------------------------------------------------------------------- .env.compile

TEST_F(SettingsTest, EnableDisableAndModeRoundTrip) {
  EXPECT_EQ(run({"config", "disable"}).exit_code, 0);
  EXPECT_EQ(contents_of(path(".env.compile")), "export TOTO_DISABLE_COMPILE=1\n");
  EXPECT_EQ(run({"config", "mode", "max-autotune"}).exit_code, 0);
  EXPECT_EQ(contents_of(path(".env.compile")),
            "export TOTO_DISABLE_COMPILE=0\nexport TOTO_COMPILE=1\n"
            "export TOTO_COMPILE_MODE=max-autotune\n");
  EXPECT_EQ(run({"config", "disable"}).exit_code, 0);
  EXPECT_EQ(run({"config", "enable"}).exit_code, 0);
  EXPECT_EQ(contents_of(path(".env.compile")),
            "export TOTO_DISABLE_COMPILE=0\nexport TOTO_COMPILE=1\n"
            "export TOTO_COMPILE_MODE=max-autotune\n");
}

// Enabling does not undo a mode that was chosen; who expects it to is told.
TEST_F(SettingsTest, EnableWarnsThatReferenceStaysActive) {
  EXPECT_EQ(run({"config", "mode", "reference"}).err, "");
  EXPECT_EQ(run({"config", "disable"}).err, "");
  const Result result = run({"config", "enable"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(has(result.err, "TOTO_COMPILE_MODE=reference, which stays active")) << result.err;
  EXPECT_EQ(run({"config", "mode", "default"}).err, "");
  EXPECT_EQ(run({"config", "enable"}).err, "");
}

TEST_F(SettingsTest, TheShellGetsWhatWasWritten) {
  for (const auto& [action, mode] :
       {std::pair("disable", "reference"), std::pair("mode reduce-overhead", "reduce-overhead"),
        std::pair("mode reference", "reference"), std::pair("enable", "reference")}) {
    const Result result = shell(fmt::format(
        "toto config {} >/dev/null && source .env.compile && toto config show", action));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::size_t row = result.out.find("\nmode ");
    ASSERT_NE(row, std::string::npos);
    EXPECT_TRUE(has(result.out.substr(row, 60), mode)) << action << "\n" << result.out;
  }
}

TEST_F(SettingsTest, KeepsTheLinesItDoesNotKnow) {
  const std::string theirs =
      "# my switches\n\nexport CUDA_VISIBLE_DEVICES=0\nTORCH_LOGS=\"recompiles\"\n";
  file(".env.compile",
       theirs + "TOTO_COMPILE=0\nexport OTHER='a b'\nexport TOTO_COMPILE=\"0\" # x");
  EXPECT_EQ(run({"config", "enable"}).exit_code, 0);
  EXPECT_EQ(contents_of(path(".env.compile")),
            theirs + "export OTHER='a b'\nexport TOTO_COMPILE=1\nexport TOTO_DISABLE_COMPILE=0\n");
  // What does more with a name than set it stays, and does not get the last word.
  file(".env.compile", "export TOTO_COMPILE=1\nexport TOTO_COMPILE=0 OTHER=1\n");
  EXPECT_EQ(run({"config", "enable"}).exit_code, 0);
  EXPECT_EQ(contents_of(path(".env.compile")),
            "export TOTO_COMPILE=0 OTHER=1\nexport TOTO_DISABLE_COMPILE=0\n"
            "export TOTO_COMPILE=1\n");
}

TEST_F(SettingsTest, TotoItselfNeverReadsEnvCompile) {
  file(".env.compile", "export TOTO_COMPILE_MODE=nonsense\n");
  EXPECT_EQ(shown("mode").first, "default");
}

TEST_F(SettingsTest, StatusShowsFileAndEnvironment) {
  Result result = run({"config", "status"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(has(result.out, "enabled, mode default (no .env.compile)\n")) << result.out;
  EXPECT_TRUE(has(result.out, "active: default (default), dtype f32, isa "));
  run({"config", "mode", "max-autotune"});
  result = run({"config", "status"}, {{"TOTO_COMPILE_MODE", "reference"}});
  EXPECT_TRUE(has(result.out, "active: reference (TOTO_COMPILE_MODE)")) << result.out;
  EXPECT_EQ(result.out.find("enabled, mode max-autotune; this shell does not have it: "
                            "`source .env.compile`\n"),
            0u)
      << result.out;
  const Environment sourced = {
      {"TOTO_DISABLE_COMPILE", "0"}, {"TOTO_COMPILE", "1"}, {"TOTO_COMPILE_MODE", "max-autotune"}};
  result = run({"config", "status"}, sourced);
  EXPECT_EQ(result.out.find("enabled, mode max-autotune; this shell has it\n"), 0u) << result.out;
  result = run({"config", "status"}, {{"TOTO_COMPILE_MODE", "fastest"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(has(result.out, "active: none (TOTO_COMPILE_MODE: unknown mode")) << result.out;
  const io::Json json = json_of(run({"config", "status", "--json", "-"}));
  EXPECT_FALSE(at(json, "sourced").boolean);
  EXPECT_EQ(at(at(json, "variables").array.at(2), "file").string, "max-autotune");
}

TEST_F(SettingsTest, ConfigRefusesNonsense) {
  expect_refusal(2, {"fastest", "reference", "default", "reduce-overhead", "max-autotune"},
                 {"config", "mode", "fastest"});
  expect_refusal(2, {"the mode is missing"}, {"config", "mode"});
  expect_refusal(2, {"\"enabel\"", "did you mean enable?"}, {"config", "enabel"});
  expect_refusal(2, {"unexpected argument \"now\""}, {"config", "enable", "now"});
  expect_refusal(2, {"cannot be written"}, {"config", "disable", "--file", "."});
  expect_refusal(2, {"checks all modes"}, {"config", "test", "--mode", "default"});
  expect_refusal(2, {"TOTO_THREADS is \"x\""}, {"config", "show"}, {{"TOTO_THREADS", "x"}});
  expect_refusal(2, {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS is \"maybe\""}, {"config", "show"},
                 {{"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "maybe"}});
}

}  // namespace
}  // namespace toto::cli
