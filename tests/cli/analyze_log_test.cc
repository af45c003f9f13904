// `toto analyze-log`, the command: files, pipes, reports, exit codes, and memory that does not grow
// with the log.
#include "cli_fixture.h"
#include "sanitized.h"

namespace toto::cli {
namespace {

using AnalyzeLogTest = CliTest;

constexpr const char* kLog =
    "torch._dynamo hit config.recompile_limit (8)\n"
    "   function: 'positional_embedding' (/srv/toto/model/attention.py:105)\n"
    "   last reason: 6/7: kv_cache._current_idx[7] == 0\n"
    "skipping cudagraphs due to mutated inputs (2 instances)\n";

TEST_F(AnalyzeLogTest, ReportsInThreeForms) {
  file("compile.log", kLog);
  const Result text = run({"analyze-log", "compile.log", "--output", "new/report.md"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "1 x recompile limit hit: positional_embedding (attention.py:105)"));
  EXPECT_TRUE(has(text.out, "toto.cpp"));
  const std::string report = contents_of(path("new/report.md"));
  EXPECT_TRUE(has(report, "# Compile log compile.log")) << report;
  EXPECT_TRUE(has(report, "**Change in PyTorch:** use a static cache"));
  EXPECT_EQ(run({"analyze-log", "compile.log", "--output", "-"}).out, report);

  const io::Json json = json_of(run({"analyze-log", "compile.log", "--json", "-"}));
  EXPECT_EQ(at(json, "lines").integer, 4);
  EXPECT_TRUE(at(json, "evidence").boolean);
  EXPECT_EQ(keys_of(at(json, "totals")),
            (std::vector<std::string>{"recompiles", "limit_hits", "graph_breaks", "cudagraph_skips",
                                      "replans"}));
  EXPECT_EQ(at(at(json, "totals"), "limit_hits").integer, 1);
  const io::Json& group = at(json, "groups").array.at(0);
  for (const char* key : {"kind", "function", "location", "reason", "count", "severity", "change",
                          "here", "why", "cost"}) {
    EXPECT_NE(group.find(key), nullptr) << key;
  }
  EXPECT_EQ(at(group, "kind").string, "limit_hit");
  EXPECT_EQ(at(group, "location").string, "attention.py:105");
}

TEST_F(AnalyzeLogTest, ReadsPipes) {
  const Result piped = run({"analyze-log", "-", "--json", "-"}, {}, kLog);
  EXPECT_EQ(at(json_of(piped), "lines").integer, 4);
  file("compile.log", kLog);
  EXPECT_EQ(shell("toto analyze-log <(cat compile.log) --json - | grep -c limit_hit").out, "2\n");
}

// Our own log, as the engine writes it: made plans are healthy, replans are counted.
TEST_F(AnalyzeLogTest, ReadsWhatOurOwnEngineLogs) {
  file("in.csv", wide_csv(80));
  const Result forecast = run({"forecast", "in.csv", "--horizon", "2", "--mode", "reduce-overhead"},
                              {{"TOTO_LOGS", "plans"}});
  ASSERT_TRUE(has(forecast.err, "[plans] plan 1")) << forecast.err;
  const io::Json json = json_of(run({"analyze-log", "-", "--json", "-"}, {}, forecast.err));
  EXPECT_EQ(at(at(json, "totals"), "replans").integer, 0);
  EXPECT_GE(at(json, "plans").integer, 1);
  EXPECT_TRUE(has(at(json, "summary").string, "healthy as far as it was logged"));
}

TEST_F(AnalyzeLogTest, NothingRecognisedIsExitOneAndASentence) {
  for (const std::string log : {"", "epoch 1\nepoch 2\n"}) {
    const Result result = run({"analyze-log", "-", "--json", "out.json"}, {}, log);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(has(error_line(result), "nothing recognised")) << result.err;
    EXPECT_TRUE(has(error_line(result), "TORCH_LOGS=")) << result.err;
    const io::Json json = io::parse_json(contents_of(path("out.json")), "out.json");
    EXPECT_FALSE(at(json, "evidence").boolean);
    EXPECT_TRUE(at(json, "groups").array.empty());
  }
}

TEST_F(AnalyzeLogTest, RefusesWhatCannotBeReadOrWritten) {
  expect_refusal(3, {"absent.log", "no such file"}, {"analyze-log", "absent.log"});
  expect_refusal(3, {"is a folder"}, {"analyze-log", "."});
  expect_refusal(2, {"LOG"}, {"analyze-log"});
  file("compile.log", kLog);
  expect_refusal(2, {"--output is compile.log"},
                 {"analyze-log", "compile.log", "--output", "compile.log"});
  expect_refusal(2, {"both -"}, {"analyze-log", "compile.log", "--output", "-", "--json", "-"});
  EXPECT_EQ(contents_of(path("compile.log")), kLog);
}

// 200 MB through 64 MB of address space: a log of any size passes.
TEST_F(AnalyzeLogTest, MemoryDoesNotGrowWithTheLog) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  // Noise, records and a line of a megabyte, written by the shell while it is read.
  const Result result = shell(
      "{ for i in $(seq 20); do seq -f 'step %g: loss 0.123456789 and some more words' 200000; "
      "printf 'torch._dynamo hit config.recompile_limit (8)\\n   function: '\"'f'\"' "
      "(/a/b.py:1)\\n   last reason: 0/%d: n == %d\\n' $i $i; head -c 1000000 /dev/zero; echo; "
      "done; } | { ulimit -v 65536; toto analyze-log - --json -; }");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const io::Json json = io::parse_json(result.out, "stdout");
  EXPECT_EQ(at(json, "lines").integer, 20 * (200000 + 4));
  EXPECT_EQ(at(at(json, "totals"), "limit_hits").integer, 20);
  EXPECT_EQ(at(json, "groups").array.size(), 1u);
}

}  // namespace
}  // namespace toto::cli
