// `toto make-model`, `toto inspect`, `toto doctor` and `toto bench`: models and machines.
#include "cli_fixture.h"
#include "io/safetensors.h"
#include "toto1_models.h"

namespace toto::cli {
namespace {

// Small enough to be made and damaged many times.
Toto1Config tiny_config() {
  Toto1Config config = mini_config();
  config.embed_dim = 16;
  config.num_heads = 2;
  config.mlp_hidden_dim = 16;
  config.num_components = 2;
  return config;
}

class ModelTest : public CliTest {
 protected:
  void SetUp() override { make_model(tiny_config(), 1, io::TensorType::f32, path("tiny")); }
  std::string weights() const { return contents_of(path("tiny/model.safetensors")); }
  void damage(std::string_view bytes) const { put(path("tiny/model.safetensors"), bytes); }
};

TEST_F(ModelTest, MakeModelIsReproducible) {
  file("config.json", toto1_config_json(tiny_config()));
  const Result result = run({"make-model", "a", "--config", "config.json", "--seed", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "untrained")) << result.out;
  EXPECT_EQ(contents_of(path("a/model.safetensors")), weights());
  EXPECT_EQ(contents_of(path("a/config.json")), contents_of(path("tiny/config.json")));
  EXPECT_EQ(run({"make-model", "b", "--config", "config.json", "--seed", "2"}).exit_code, 0);
  EXPECT_NE(contents_of(path("b/model.safetensors")), weights());
  EXPECT_EQ(run({"make-model", "e", "--config", "config.json"}, {{"TOTO_SEED", "2"}}).exit_code, 0);
  EXPECT_EQ(contents_of(path("e/model.safetensors")), contents_of(path("b/model.safetensors")));
  for (const char* type : {"f16", "bf16"}) {
    const io::Json json = json_of(
        run({"make-model", type, "--config", "config.json", "--dtype", type, "--json", "-"}));
    EXPECT_LT(at(json, "file_bytes").integer, static_cast<std::int64_t>(weights().size()));
    EXPECT_EQ(run({"inspect", path(type)}).exit_code, 0);
  }
  EXPECT_TRUE(
      has(run({"make-model", "c", "--config", "mini", "--progress"}).err, "make-model: 100 %"));
}

TEST_F(ModelTest, TheBundledModelIsWhatItsCardSays) {
  const std::string bundled = TOTO_SOURCE_DIR "/models/toto-mini/";
  EXPECT_LT(contents_of(bundled + "model.safetensors").size(), 8'000'000u);
  const io::Json json = json_of(run({"inspect", "toto-mini", "--json", "-"}));
  EXPECT_TRUE(has(contents_of(bundled + "README.md"), at(json, "weights_sha256").string));
  EXPECT_TRUE(at(json, "trained").boolean);
}

TEST_F(ModelTest, InterruptedMakeModelLeavesTheModelThatWasThere) {
  const std::string config = contents_of(path("tiny/config.json")), before = weights();
  const Running running = start({"make-model", "tiny", "--config", "base"});
  const auto num_files = [&] {
    return std::distance(std::filesystem::directory_iterator(path("tiny")), {});
  };
  EXPECT_TRUE(testing::eventually([&] { return num_files() >= 4; }));
  kill(running.pid(), SIGINT);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(has(error_line(result), "interrupted")) << result.err;
  EXPECT_EQ(num_files(), 2) << "no temporary file is left";
  EXPECT_EQ(contents_of(path("tiny/config.json")), config);
  EXPECT_EQ(weights(), before);
}

TEST_F(ModelTest, MakeModelRefuses) {
  expect_refusal(2, {"--config is \"huge\"", "base, mini"},
                 {"make-model", "x", "--config", "huge"});
  expect_refusal(2, {"--dtype", "f32, f16, bf16"}, {"make-model", "x", "--dtype", "int8"});
  expect_refusal(2, {"--seed"}, {"make-model", "x", "--seed", "one"});
  expect_refusal(2, {"TOTO_SEED"}, {"make-model", "x"}, {{"TOTO_SEED", "junk"}});
  expect_refusal(2, {"folder"}, {"make-model", "", "--config", "mini"});
  file("bad.json", "{\"patch_size\": 0}");
  expect_refusal(3, {"bad.json", "patch_size"}, {"make-model", "x", "--config", "bad.json"});
  file("plain", "");
  expect_refusal(2, {"plain"}, {"make-model", "plain", "--config", "mini"});
  // Random weights replace random weights, and nothing else.
  EXPECT_EQ(run({"make-model", "tiny", "--config", "mini"}).exit_code, 0);
  damage("other work");
  expect_refusal(2, {"tiny", "did not write"}, {"make-model", "tiny", "--config", "mini"});
  EXPECT_EQ(weights(), "other work");
}

TEST_F(ModelTest, InspectDescribesAModel) {
  const io::Json json = json_of(run({"inspect", "tiny", "--json", "-"}));
  EXPECT_EQ(at(json, "model").string, "tiny");
  EXPECT_TRUE(at(json, "loads").boolean);
  EXPECT_EQ(at(json, "reason").kind, io::Json::Kind::null);
  EXPECT_FALSE(at(json, "trained").boolean);
  EXPECT_EQ(at(json, "weights_sha256").string.size(), 64u);
  EXPECT_EQ(at(at(json, "config"), "embed_dim").integer, 16);
  EXPECT_EQ(at(json, "num_parameters").integer, tiny_config().num_parameters(false));
  EXPECT_EQ(at(json, "tensors").array.size(), 52u);
  const io::Json& tensor = at(json, "tensors").array.at(0);
  EXPECT_EQ(at(tensor, "name").string, "model.patch_embed.projection.weight");
  EXPECT_EQ(at(tensor, "dtype").string, "F32");
  EXPECT_EQ(at(tensor, "shape").array.size(), 2u);
  // What it says about memory is what the engine takes.
  ASSERT_EQ(at(json, "memory").array.size(), 6u);
  for (const io::Json& memory : at(json, "memory").array) {
    EngineOptions options;
    options.mode = parse_mode(at(memory, "mode").string);
    options.dtype = parse_dtype(at(memory, "dtype").string);
    const Engine engine = Engine::load(path("tiny"), options);
    EXPECT_NEAR(at(memory, "weights_mb").real,
                static_cast<double>(engine.model().weight_bytes) / 1e6, 1e-9);
    EXPECT_GT(at(memory, "kv_cache_mb_per_variate").real, 0);
  }
  const Result text = run({"inspect", "tiny", "--json", "report.json"});
  EXPECT_TRUE(has(text.out, "untrained")) << text.out;
  EXPECT_TRUE(has(text.out, "[16, 16]")) << text.out;
  EXPECT_EQ(io::parse_json(contents_of(path("report.json")), "report").object.size(),
            json.object.size());
}

TEST_F(ModelTest, InspectSaysWhyAModelWouldNotLoad) {
  const std::string good = weights();
  const auto expect_reason = [&](std::initializer_list<std::string_view> fragments) {
    const Result result = run({"inspect", "tiny", "--json", "-"});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    const io::Json json = io::parse_json(result.out, "stdout");
    EXPECT_FALSE(at(json, "loads").boolean);
    for (const std::string_view fragment : fragments) {
      EXPECT_TRUE(has(error_line(result), fragment)) << result.err;
      EXPECT_TRUE(has(at(json, "reason").string, fragment));
    }
    return json;
  };
  damage(good.substr(0, good.size() - 1));
  EXPECT_EQ(at(expect_reason({"model.safetensors"}), "config").kind, io::Json::Kind::object);

  std::string with_nan = good;
  with_nan.replace(with_nan.size() - 4, 4, std::string("\x00\x00\xc0\x7f", 4));
  damage(with_nan);
  const io::Json nan = expect_reason({"mixture_weights.bias"});
  EXPECT_EQ(at(nan, "tensors").array.size(), 52u) << "described all the same";
  EXPECT_EQ(at(nan, "weights_sha256").string.size(), 64u);

  damage(good);
  Toto1Config other = tiny_config();
  other.embed_dim = 32;
  put(path("tiny/config.json"), toto1_config_json(other));
  EXPECT_EQ(at(expect_reason({"shape", "config.json"}), "tensors").array.size(), 52u);

  put(path("tiny/config.json"), "{");
  EXPECT_EQ(at(expect_reason({"config.json"}), "config").kind, io::Json::Kind::null);
}

TEST_F(ModelTest, DoctorChecksTheMachine) {
  const Result result = run({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(has(result.out, "all checks passed")) << result.out;
  const io::Json json = json_of(run({"doctor", "--json", "-", "--threads", "1"}));
  EXPECT_TRUE(at(json, "passed").boolean);
  std::vector<std::string> names;
  for (const io::Json& check : at(json, "checks").array) {
    EXPECT_EQ(keys_of(check), (std::vector<std::string>{"name", "status", "value", "advice"}));
    names.push_back(at(check, "name").string);
    const std::string& status = at(check, "status").string;
    EXPECT_TRUE(status == "ok" || status == "warn") << names.back();
    EXPECT_EQ(status == "ok", at(check, "advice").string.empty()) << names.back();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"version", "config", "instruction set", "threads",
                                             "limits", "mode", "model", "model files", "weights",
                                             "kv cache", "forecast", "plan cache", "memory",
                                             "clock", "temporary folder", "cache folder"}));
}

TEST_F(ModelTest, DoctorFindsWhatIsWrong) {
  const auto line = [](const Result& result, std::string_view name) {
    const std::size_t at = result.out.find(name);
    const std::size_t begin = result.out.rfind('\n', at) + 1;
    return result.out.substr(begin, result.out.find('\n', at) - begin);
  };
  const Result missing = run({"doctor", "--model", "absent"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(line(missing, "model  ").starts_with("fail")) << missing.out;
  EXPECT_TRUE(has(missing.out, "no model \"absent\"")) << missing.out;
  EXPECT_TRUE(has(missing.out, "some checks failed")) << missing.out;

  const Result variable = run({"doctor"}, {{"TOTO_ISA", "sse"}});
  EXPECT_EQ(variable.exit_code, 1);
  EXPECT_TRUE(has(line(variable, "settings"), "TOTO_ISA")) << variable.out;

  const Result rollback = run({"doctor"}, {{"TOTO_DISABLE_COMPILE", "1"}});
  EXPECT_EQ(rollback.exit_code, 0);
  EXPECT_TRUE(line(rollback, "mode  ").starts_with("warn")) << rollback.out;
  EXPECT_TRUE(has(line(rollback, "mode  "), "reference (TOTO_DISABLE_COMPILE)")) << rollback.out;
  EXPECT_TRUE(has(rollback.out, "ReferenceKVCache")) << rollback.out;

  const Result cache =
      run({"doctor"}, {{"TOTO_CACHE_DIR", "/proc/nowhere/"}, {"TOTO_COMPILE_BACKEND", "inductor"}});
  EXPECT_TRUE(has(cache.out, "TOTO_COMPILE_BACKEND asks for inductor")) << cache.out;

  const Result temporary = run({"doctor"}, {{"TMPDIR", "/nonexistent"}});
  EXPECT_EQ(temporary.exit_code, 1);
  EXPECT_TRUE(line(temporary, "temporary folder").starts_with("fail")) << temporary.out;
  EXPECT_TRUE(has(line(temporary, "temporary folder"), "/nonexistent: No such file"))
      << temporary.out;
  EXPECT_TRUE(has(temporary.out, "set TMPDIR")) << temporary.out;

  damage("x");
  EXPECT_EQ(run({"doctor", "--model", "tiny"}).exit_code, 1);
}

TEST_F(ModelTest, BenchReportsTheWholeContract) {
  const io::Json json =
      json_of(run({"bench", "--model", "tiny", "--context", "64", "--repeat", "5", "--batch", "3",
                   "--variates", "2", "--samples", "4", "--horizon", "20", "--json", "-"}));
  for (const char* key :
       {"engine", "shape", "ms", "first_ms", "load_ms", "series_per_second", "replans_after_warmup",
        "allocations_after_warmup", "peak_rss_mb", "weights_mb"}) {
    EXPECT_NE(json.find(key), nullptr) << key;
  }
  EXPECT_EQ(at(at(json, "engine"), "model").string, "tiny");
  const io::Json& ms = at(json, "ms");
  EXPECT_EQ(keys_of(ms), (std::vector<std::string>{"min", "p50", "p95", "p99", "mean", "std"}));
  EXPECT_GT(at(ms, "min").real, 0);
  EXPECT_LE(at(ms, "min").real, at(ms, "p50").real);
  EXPECT_LE(at(ms, "p50").real, at(ms, "p95").real);
  EXPECT_LE(at(ms, "p95").real, at(ms, "p99").real);
  EXPECT_NEAR(at(json, "series_per_second").real, 3000 / at(ms, "mean").real, 1e-6);
  EXPECT_EQ(at(json, "replans_after_warmup").integer, 0);
  EXPECT_EQ(at(json, "allocations_after_warmup").kind, io::Json::Kind::integer);
  EXPECT_GT(at(json, "peak_rss_mb").real, 1);
  EXPECT_GT(at(json, "weights_mb").real, 0);
  EXPECT_EQ(at(at(json, "shape"), "variates").integer, 2);
}

TEST_F(ModelTest, BenchCountsAllocations) {
  const auto allocations = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"bench", "--model", "tiny", "--repeat", "4", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return at(json_of(run(words)), "allocations_after_warmup").integer;
  };
  EXPECT_EQ(allocations({"--warmup", "2"}), 0);
  EXPECT_EQ(allocations({"--warmup", "2", "--horizon", "40", "--batch", "3", "--variates", "2"}),
            0);
  // Without a warm-up the first run must allocate, so a count that is broken shows.
  EXPECT_GT(allocations({"--warmup", "0"}), 0);
  // The plain mode allocates on every call.
  EXPECT_GE(allocations({"--mode", "reference"}), 4);
}

TEST_F(ModelTest, BenchMeanAndTable) {
  const Result table =
      run({"bench", "--model", "tiny", "--mean", "--repeat", "1", "--warmup", "0"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(has(table.out, "mean only")) << table.out;
  EXPECT_TRUE(has(table.out, "1 series of 1 variate, 512 points of context, 1 step ahead"))
      << table.out;
  EXPECT_EQ(table.err,
            "warning: the model tiny is untrained: its weights are random and its "
            "forecasts meaningless\n");
}

TEST_F(ModelTest, EveryCommandSaysWhatIsWrongWithTheModel) {
  std::string config = contents_of(path("tiny/config.json"));
  put(path("tiny/config.json"), config.insert(1, "\"surprise\": 1,"));
  file("in.csv", wide_csv(20));
  const std::vector<std::vector<std::string>> commands = {
      {"forecast", "in.csv", "--model", "tiny", "--horizon", "2"},
      {"bench", "--model", "tiny", "--repeat", "1"},
      {"verify", "--model", "tiny", "--modes", "default"},
      {"doctor", "--model", "tiny"},
      {"inspect", "tiny"}};
  for (const std::vector<std::string>& words : commands) {
    const Result result = run(words);
    const bool in_report = words[0] == "doctor";
    for (const std::string text :
         {"unknown key \"surprise\" is ignored", "the model tiny is untrained"}) {
      if (words[0] == "inspect" && text.ends_with("untrained")) continue;  // a line of its report
      const std::string& said = in_report ? result.out : result.err;
      const std::size_t first = said.find(text);
      EXPECT_NE(first, std::string::npos) << words[0] << "\n" << said;
      EXPECT_EQ(said.find(text, first + 1), std::string::npos) << words[0] << " says it twice";
    }
    if (in_report) {
      EXPECT_EQ(result.err, "") << "findings are the result";
    } else if (words[0] == "inspect") {
      EXPECT_FALSE(has(result.err, "untrained")) << result.err;
    }
  }
}

TEST_F(ModelTest, BenchRefuses) {
  expect_refusal(2, {"--repeat", "from 1"}, {"bench", "--repeat", "0"});
  expect_refusal(2, {"--samples"}, {"bench", "--samples", "1000000000"});
  expect_refusal(2, {"--horizon"}, {"bench", "--horizon", "0"});
  expect_refusal(2, {"--mean", "--samples"}, {"bench", "--mean", "--samples", "3"});
  expect_refusal(4, {"MB are free"},
                 {"bench", "--context", "1000000", "--batch", "100000", "--variates", "10000"});
  expect_refusal(3, {"absent"}, {"bench", "--model", "absent"});
}

}  // namespace
}  // namespace toto::cli
