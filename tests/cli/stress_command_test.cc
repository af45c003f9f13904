// `toto stress` and `toto compare-modes` as a user runs them: exit codes, files, what is refused.
#include "cli_fixture.h"
#include "test_model.h"

namespace toto::cli {
namespace {

class StressCommandTest : public CliTest {
 protected:
  static std::vector<std::string> words(std::vector<std::string> all,
                                        const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // Quick, on one symbol and with a small model: what is tested is the command.
  std::vector<std::string> stress(const std::vector<std::string>& more) {
    return words({"stress", "--mode", "quick", "--model", model(), "--data", data("AAPL.csv"),
                  "--threads", "1"},
                 more);
  }
  std::vector<std::string> compare(const std::vector<std::string>& more) {
    return words({"compare-modes", "--model", model(), "--data", data("AAPL.csv"), "--context",
                  "64", "--samples", "4", "--runs", "3", "--threads", "1"},
                 more);
  }
  const std::string& model() {
    if (model_.empty()) model_ = testing::made_model(models_);
    return model_;
  }

 private:
  testing::TemporaryFolder models_;
  std::string model_;
};

// AddressSanitizer keeps freed memory: little of it, so that none is taken for a leak.
const Environment kLittleQuarantine = {{"ASAN_OPTIONS", "quarantine_size_mb=1"}};

TEST_F(StressCommandTest, WritesBothFilesAndARowForEveryModeAndIteration) {
  const Result result = run(stress({"--output-dir", "out", "--progress"}), kLittleQuarantine);
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1) << result.err;
  EXPECT_TRUE(has(result.err, "stress quick: 100 %")) << result.err;
  const io::Json json =
      io::parse_json(contents_of(path("out/compile_stress_results_quick.json")), "results");
  EXPECT_EQ(at(json, "passed").boolean, result.exit_code == 0);
  const std::vector<io::Json>& rows = at(json, "rows").array;
  ASSERT_EQ(rows.size(), 12U);
  const char* modes[] = {"reference", "default", "reduce-overhead", "max-autotune"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(keys_of(rows[i]),
              (std::vector<std::string>{"model", "mode", "iteration", "accuracy", "performance"}));
    EXPECT_EQ(at(rows[i], "model").string, "model-1");
    EXPECT_EQ(at(rows[i], "mode").string, modes[i / 3]);
    EXPECT_EQ(at(rows[i], "iteration").integer, static_cast<std::int64_t>(i % 3));
    const io::Json& accuracy = at(rows[i], "accuracy");
    EXPECT_EQ(keys_of(accuracy), (std::vector<std::string>{"mae", "rmse", "mape", "prediction_mean",
                                                           "prediction_std", "target_mean"}));
    for (const io::Json::Member& member : accuracy.object) EXPECT_TRUE(member.second.is_number());
    EXPECT_EQ(keys_of(at(rows[i], "performance")),
              (std::vector<std::string>{"inference_time_ms", "peak_memory_mb", "recompilations"}));
    EXPECT_EQ(at(at(rows[i], "performance"), "recompilations").integer, 0);
  }
  for (const char* key : {"latency_ms", "latency_mixed_ms", "latency_concurrent_ms"}) {
    const io::Json& latency = at(at(json, key), "default");
    EXPECT_GE(at(latency, "n").integer, 3) << key;
    EXPECT_LE(at(latency, "p50").real, at(latency, "p99").real) << key;
  }
  EXPECT_TRUE(at(json, "date").string.ends_with("Z"));
  EXPECT_FALSE(at(json, "cpu").string.empty() || at(json, "host").string.empty());
  const std::string report = contents_of(path("out/compile_stress_report_quick.md"));
  EXPECT_TRUE(has(report, "| default | 4 concurrent callers |")) << report;
  EXPECT_TRUE(has(report, at(json, "date").string + " on ")) << report;
  EXPECT_TRUE(has(report, "# toto stress: quick"));
  EXPECT_TRUE(has(report, "| same-bits | pass |")) << report;
  // Everything but speed, which a loaded machine and a sanitizer decide for a model this small.
  for (const io::Json& check : at(json, "checks").array) {
    const std::string& name = at(check, "name").string;
    EXPECT_TRUE(at(check, "passed").boolean || name.starts_with("speed/")) << name;
  }
}

// One plan at a time: every shape is planned again and again, which is over the limit.
TEST_F(StressCommandTest, ExitsWithOneAndNamesTheBrokenLimit) {
  const Result result =
      run(stress({"--output-dir", "out", "--plan-cache-size", "1"}), kLittleQuarantine);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(has(result.out, "BROKEN  replans/reduce-overhead: ")) << result.out;
  EXPECT_TRUE(has(result.out, "at most 10 expected")) << result.out;
  const std::string report = contents_of(path("out/compile_stress_report_quick.md"));
  EXPECT_TRUE(has(report, "## Broken limits")) << report;
  EXPECT_TRUE(has(report, "**FAILED"));
}

TEST_F(StressCommandTest, RefusesBeforeAnythingRuns) {
  expect_refusal(2, {"--mode", "turbo", "production-check"}, {"stress", "--mode", "turbo"});
  expect_refusal(2, {"--mode", "did you mean quick"}, {"stress", "--mode", "quik"});
  file("a-file", "");
  expect_refusal(2, {"a-file"}, stress({"--output-dir", "a-file"}));
  // Where root may do anything, and nothing can be made all the same.
  const Result result = run(stress({"--output-dir", "/proc/x/y", "--progress"}));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(has(error_line(result), "/proc/x/y")) << result.err;
  EXPECT_FALSE(has(result.err, "stress quick")) << "it ran: " << result.err;
  expect_refusal(3, {"no-such.csv"}, {"stress", "--data", "no-such.csv"});
  expect_refusal(3, {"no-such-model"}, {"stress", "--model", "no-such-model"});
  file("short.csv", wide_csv(40));
  expect_refusal(3, {"short", "40 values", "expected 3"},
                 {"stress", "--model", model(), "--data", "short.csv", "--column", "a"});
  expect_refusal(2, {"nothing"},
                 {"stress", "--model", model(), "--data", "short.csv", "--column", "nothing"});
  expect_refusal(2, {"f64"}, stress({"--dtype", "f64"}));
}

// `toto config test` is production-check, with the flags given to it.
TEST_F(StressCommandTest, ConfigTestPassesItsFlagsOn) {
  const Result result = run({"config", "test", "--model", model(), "--threads", "1", "--seed", "5",
                             "--output-dir", "out", "--json", "-"},
                            kLittleQuarantine);
  const io::Json json = io::parse_json(result.out, "stdout");
  EXPECT_EQ(at(json, "stress_mode").string, "production-check");
  EXPECT_EQ(at(json, "seed").integer, 5);
  EXPECT_EQ(at(json, "passed").boolean, result.exit_code == 0) << result.err;
  EXPECT_EQ(contents_of(path("out/compile_stress_results_production-check.json")), result.out);
}

TEST_F(StressCommandTest, StopsOnInterrupt) {
  const Running running = start({"stress", "--mode", "full", "--output-dir", "out", "--progress",
                                 "--model", model(), "--threads", "1"});
  EXPECT_TRUE(testing::eventually([&] { return has(running.err_so_far(), "stress full: "); }));
  kill(running.pid(), SIGINT);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

// ---------------------------------------------------------------------------------- compare-modes

TEST_F(StressCommandTest, ComparesModesInAllForms) {
  const Result result =
      run(compare({"--report", "m.md", "m.html", "--json", "m.json", "--progress"}));
  EXPECT_TRUE(result.exit_code == 0 || has(result.out, "speed/")) << result.out << result.err;
  EXPECT_TRUE(has(result.out, "give the same bits")) << result.out;
  EXPECT_TRUE(has(result.err, "compare-modes: 100 %")) << result.err;
  const io::Json json = io::parse_json(contents_of(path("m.json")), "m.json");
  const std::vector<io::Json>& rows = at(json, "rows").array;
  ASSERT_EQ(rows.size(), 4U);
  for (const io::Json& row : rows) {
    EXPECT_EQ(at(row, "symbol").string, "AAPL");
    for (const char* key : {"ms_mean", "ms_std", "speedup", "mae", "mae_persistence",
                            "deviation_mean", "deviation_max", "replans", "peak_memory_mb"}) {
      EXPECT_TRUE(at(row, key).is_number()) << key;
    }
    EXPECT_EQ(at(row, "mae_persistence").real, at(rows[0], "mae_persistence").real);
  }
  EXPECT_TRUE(has(contents_of(path("m.md")), "# toto compare-modes"));
  EXPECT_TRUE(has(result.err, "written: m.md\n")) << result.err;
  const std::string page = contents_of(path("m.html"));
  EXPECT_TRUE(has(page, "<!DOCTYPE html>"));
  EXPECT_TRUE(has(page, "give the same bits"));
  EXPECT_TRUE(has(page, "Time of every forecast of AAPL"));
}

TEST_F(StressCommandTest, CompareModesRefusesWhatItCannotCompare) {
  expect_refusal(2, {"--data is missing"}, {"compare-modes"});
  expect_refusal(2, {"no column \"close\"", "--column chooses"},
                 {"compare-modes", "--data", data("AirPassengers.csv"), "--model", model()});
  expect_refusal(2, {"--report", ".md or .html"}, compare({"--report", "m.txt"}));
  expect_refusal(2, {"--runs"}, compare({"--runs", "0"}));
  expect_refusal(2, {"--exact"}, compare({"--exact"}));
  expect_refusal(2, {"turbo"}, compare({"--modes", "turbo"}));
  expect_refusal(2, {"--mode"}, compare({"--mode", "default"}));
  expect_refusal(3, {"AAPL", "was read before"}, compare({"--data", data("AAPL.csv")}));
  file("short.csv", wide_csv(33));
  expect_refusal(3, {"short", "33 values"},
                 {"compare-modes", "--data", "short.csv", "--column", "a", "--model", model()});
}

}  // namespace
}  // namespace toto::cli
