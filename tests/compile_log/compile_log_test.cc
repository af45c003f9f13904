// Logs of PyTorch's compiler and of this engine: counting, grouping, and that truncated,
// interleaved and garbage lines do not change the result.
#include "compile_log/compile_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compile_log/log_line.h"
#include "compile_log/log_record.h"
#include "io_fixture.h"

namespace toto::compile_log {
namespace {

LogAnalysis analyse(std::string_view log, std::size_t step = 1 << 20) {
  CompileLogReader reader;
  for (std::size_t at = 0; at < log.size(); at += step) reader.read(log.substr(at, step));
  return reader.finish();
}

std::string fixture(std::string_view name) {
  return io::contents_of(std::string(TOTO_SOURCE_DIR "/tests/data/logs/") + std::string(name));
}

const LogGroup* find(const LogAnalysis& analysis, LogKind kind, std::string_view function,
                     std::string_view reason) {
  for (const LogGroup& group : analysis.groups) {
    if (group.kind == kind && group.function == function &&
        group.reason.find(reason) != std::string::npos) {
      return &group;
    }
  }
  return nullptr;
}

// A message as PyTorch 2.4 and later logs it: the prefix before every line.
std::string logged(int pid, std::string_view source, std::string_view artifact,
                   const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += fmt::format("V0628 10:00:00.123456 {} {}] [6/7]{} {}\n", pid, source,
                        artifact.empty() ? "" : fmt::format(" [__{}]", artifact), line);
  }
  return text;
}

std::string recompile(int pid, std::string_view function, std::string_view file,
                      std::string_view guard) {
  return logged(
      pid, "torch/_dynamo/guards.py:2830", "recompiles",
      {fmt::format("Recompiling function {} in {}", function, file),
       "    triggered by the following guard failure(s):", fmt::format("    - {}", guard)});
}

// ------------------------------------------------------------------------------- the user's lines

constexpr std::string_view kUserLog =
    "torch._dynamo hit config.recompile_limit (8)\n"
    "   function: 'positional_embedding' (/srv/toto/model/attention.py:105)\n"
    "   last reason: 6/7: kv_cache._current_idx[7] == 0\n"
    "To log all recompilation reasons, use TORCH_LOGS=\"recompiles\".\n"
    "skipping cudagraphs due to mutated inputs (2 instances)\n"
    "skipping cudagraphs due to incompatible op aten._local_scalar_dense.default\n";

TEST(CompileLog, ReadsTheUsersOwnLines) {
  const LogAnalysis analysis = analyse(kUserLog);
  EXPECT_EQ(analysis.lines, 6u);
  EXPECT_EQ(analysis.total(LogKind::limit_hit), 1u);
  EXPECT_EQ(analysis.total(LogKind::cudagraph_skip), 2u);
  EXPECT_EQ(analysis.total(LogKind::recompile), 0u);
  ASSERT_EQ(analysis.groups.size(), 3u);

  const LogGroup& limit = analysis.groups.front();  // most severe first
  EXPECT_EQ(limit.kind, LogKind::limit_hit);
  EXPECT_EQ(limit.function, "positional_embedding");
  EXPECT_EQ(limit.location, "attention.py:105");
  EXPECT_EQ(limit.reason, "kv_cache._current_idx[7] == 0");
  EXPECT_EQ(limit.limit, "recompile_limit (8)");
  EXPECT_EQ(limit.advice.severity, Severity::critical);
  EXPECT_NE(limit.advice.change.find("static cache"), std::string::npos);

  const LogGroup* mutated = find(analysis, LogKind::cudagraph_skip, "", "mutated inputs");
  ASSERT_NE(mutated, nullptr);
  EXPECT_EQ(mutated->reason, "mutated inputs (2 instances)");
  EXPECT_NE(mutated->advice.change.find("mark_static_address"), std::string::npos);
  const LogGroup* scalar = find(analysis, LogKind::cudagraph_skip, "", "_local_scalar_dense");
  ASSERT_NE(scalar, nullptr);
  EXPECT_NE(scalar->advice.change.find("index on the host"), std::string::npos);
}

// PyTorch's advice to enable logging does not prove that it was enabled.
TEST(CompileLog, ReportsTopicsThatWereNotLogged) {
  const LogAnalysis analysis = analyse(kUserLog);
  EXPECT_TRUE(analysis.evidence());
  EXPECT_FALSE(analysis.topics.recompiles);
  EXPECT_NE(table_text(analysis, "log").find("recompiles,graph_breaks,cudagraphs"),
            std::string::npos);
}

TEST(CompileLog, KnowsTheOldNameOfTheLimit) {
  const LogAnalysis analysis = analyse(
      "[2023-10-01 10:00:00,123] [0/8] torch._dynamo.convert_frame: [WARNING] torch._dynamo hit "
      "config.cache_size_limit (8)\n"
      "[2023-10-01 10:00:00,123] [0/8] torch._dynamo.convert_frame: [WARNING]    function: 'step' "
      "(/app/step.py:12)\n"
      "[2023-10-01 10:00:00,123] [0/8] torch._dynamo.convert_frame: [WARNING]    last reason: "
      "L['n'] == 3\n");
  ASSERT_EQ(analysis.groups.size(), 1u);
  EXPECT_EQ(analysis.groups[0].limit, "cache_size_limit (8)");
  EXPECT_EQ(analysis.groups[0].function, "step");
  EXPECT_EQ(analysis.groups[0].reason, "L['n'] == 3");
}

// ----------------------------------------------------------------------------------- real logs

struct RealLog {
  const char* name;
  std::uint64_t recompiles, limit_hits, graph_breaks, cudagraph_skips;
  const char* limit;
};

class RealLogs : public ::testing::TestWithParam<RealLog> {};

// The figures are those of grep over the same file; tests/data/logs/README.md has the commands.
TEST_P(RealLogs, AreCountedAsGrepCounts) {
  const RealLog& expected = GetParam();
  const LogAnalysis analysis = analyse(fixture(expected.name));
  EXPECT_EQ(analysis.total(LogKind::recompile), expected.recompiles);
  EXPECT_EQ(analysis.total(LogKind::limit_hit), expected.limit_hits);
  EXPECT_EQ(analysis.total(LogKind::graph_break), expected.graph_breaks);
  EXPECT_EQ(analysis.total(LogKind::cudagraph_skip), expected.cudagraph_skips);
  EXPECT_TRUE(analysis.topics.recompiles && analysis.topics.graph_breaks);
  std::uint64_t sum = 0;
  for (const LogGroup& group : analysis.groups) {
    sum += group.count;
    EXPECT_FALSE(group.reason.empty()) << name_of(group.kind) << " of line " << group.first_line;
    if (group.kind == LogKind::cudagraph_skip) continue;  // a graph has no function
    EXPECT_FALSE(group.function.empty()) << name_of(group.kind) << " line " << group.first_line;
    EXPECT_NE(group.location.find(".py:"), std::string::npos) << group.location;
  }
  EXPECT_EQ(sum, analysis.num_events());
}

TEST_P(RealLogs, NameFunctionsPlacesAndCauses) {
  const LogAnalysis analysis = analyse(fixture(GetParam().name));
  const LogGroup& worst = analysis.groups.front();
  EXPECT_EQ(worst.kind, LogKind::limit_hit);
  EXPECT_EQ(worst.function, "forward");
  EXPECT_EQ(worst.location, "transformer.py:121");
  EXPECT_EQ(worst.limit, GetParam().limit);
  const LogGroup* item = find(analysis, LogKind::graph_break, "current_len", "item");
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(item->location, "util.py:168");
  EXPECT_NE(item->advice.change.find("capture_scalar_outputs"), std::string_view::npos);
  EXPECT_NE(find(analysis, LogKind::recompile, "positional_embedding", "layer_idx"), nullptr);
}

TEST_P(RealLogs, DoNotDependOnTheChunkSize) {
  const std::string log = fixture(GetParam().name);
  EXPECT_EQ(json_text(analyse(log)), json_text(analyse(log, 7)));
}

// Every line truncated: fewer facts, no crash and no invented record.
TEST_P(RealLogs, MayBeTruncatedAnywhere) {
  const std::string log = fixture(GetParam().name);
  const LogAnalysis whole = analyse(log);
  for (std::size_t size = 0; size < log.size(); size += 997) {
    const LogAnalysis part = analyse(std::string_view(log).substr(0, size));
    for (std::size_t kind = 0; kind < kNumLogKinds; ++kind) {
      EXPECT_LE(part.totals[kind], whole.totals[kind]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, RealLogs,
    ::testing::Values(RealLog{"pytorch-2.5.1.log", 23, 1, 6, 2, "cache_size_limit (4)"},
                      RealLog{"pytorch-2.15.0.log", 23, 1, 15, 2, "recompile_limit (4)"}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

// ------------------------------------------------------------------------------------- grouping

TEST(CompileLog, CountsARecompileOnceUnderItsFirstGuard) {
  const LogAnalysis analysis = analyse(logged(
      1, "torch/_dynamo/guards.py:2830", "recompiles",
      {"Recompiling function f in /app/a.py:3", "    triggered by the following guard failure(s):",
       "    - 0/2: tensor 'L['x']' size mismatch at index 0. expected 4, actual 5",
       "    - 0/1: tensor 'L['x']' size mismatch at index 0. expected 3, actual 5",
       "    - 0/0: L['n'] == 2"}));
  EXPECT_EQ(analysis.total(LogKind::recompile), 1u);
  ASSERT_EQ(analysis.groups.size(), 1u);
  EXPECT_EQ(analysis.groups[0].count, 1u);
  EXPECT_EQ(analysis.groups[0].reason,
            "tensor 'L['x']' size mismatch at index 0. expected 4, actual 5");
  EXPECT_NE(analysis.groups[0].advice.change.find("mark_dynamic"), std::string::npos);
}

TEST(CompileLog, GroupsByFunctionFileAndReason) {
  std::string log;
  for (int i = 0; i < 5; ++i) {
    log += recompile(1, "f", "/app/x/model.py:3", fmt::format("0/{}: L['n'] == {}", i, i));
  }
  log += recompile(1, "f", "/app/y/model.py:3", "0/1: L['n'] == 3");       // another file
  log += recompile(1, "g", "/app/x/model.py:9", "0/1: L['n'] == 3");       // another function
  log += recompile(1, "f", "/app/x/model.py:3", "0/1: L['idx'][1] == 3");  // another reason
  log += recompile(1, "f", "/app/x/model.py:3", "0/1: L['idx'][2] == 3");  // another element
  const LogAnalysis analysis = analyse(log);
  EXPECT_EQ(analysis.total(LogKind::recompile), 9u);
  EXPECT_EQ(analysis.groups.size(), 5u);
  EXPECT_EQ(analysis.groups.front().count, 5u);
  // The same name in two files: distinguished by their folders.
  EXPECT_EQ(analysis.groups.front().location, "x/model.py:3");
  const auto in_y = std::find_if(analysis.groups.begin(), analysis.groups.end(),
                                 [](const LogGroup& g) { return g.location == "y/model.py:3"; });
  EXPECT_NE(in_y, analysis.groups.end());
}

TEST(CompileLog, IgnoresValuesInReasons) {
  EXPECT_EQ(without_values("idx[7] == 0"), without_values("idx[7] == 12"));
  EXPECT_NE(without_values("idx[7] == 0"), without_values("idx[6] == 0"));
  EXPECT_EQ(without_values("size mismatch at index 0. expected 3, actual 4"),
            without_values("size mismatch at index 0. expected 9, actual 8"));
  EXPECT_NE(without_values("size mismatch at index 0. expected 3"),
            without_values("size mismatch at index 1. expected 3"));
  EXPECT_NE(without_values("arg0_1"), without_values("arg1_1"));
  EXPECT_EQ(without_values("mutated inputs (2 instances)"),
            without_values("mutated inputs (3 instances)"));
}

// ---------------------------------------------------------------------- interleaved, cut, garbage

TEST(CompileLog, SeparatesProcesses) {
  const std::string one = recompile(11, "f", "/app/a.py:3", "0/0: L['a'] == 1");
  const std::string two = recompile(22, "g", "/app/b.py:4", "0/0: L['b'] == 1");
  // Alternating lines, with another program's text in between.
  std::string log;
  std::size_t a = 0, b = 0;
  while (a < one.size() || b < two.size()) {
    for (auto [text, at] : {std::pair(&one, &a), std::pair(&two, &b)}) {
      const std::size_t end = text->find('\n', *at);
      if (end == std::string::npos) continue;
      log += text->substr(*at, end + 1 - *at);
      *at = end + 1;
      log += "epoch 3: - loss 0.5\n";
    }
  }
  const LogAnalysis analysis = analyse(log);
  EXPECT_EQ(analysis.groups.size(), 2u);
  const LogGroup* f = find(analysis, LogKind::recompile, "f", "");
  const LogGroup* g = find(analysis, LogKind::recompile, "g", "");
  ASSERT_TRUE(f != nullptr && g != nullptr);
  EXPECT_EQ(f->reason, "L['a'] == 1");
  EXPECT_EQ(g->reason, "L['b'] == 1");
}

TEST(CompileLog, SeesThroughProgressBarsColoursAndLauncherTags) {
  const std::string message = recompile(7, "f", "/app/a.py:3", "0/0: L['a'] == 1");
  std::string log = " 50%|#####     | 1/2 [00:01<00:01]" + message;
  const LogAnalysis bar = analyse(log);
  EXPECT_EQ(bar.total(LogKind::recompile), 1u);
  EXPECT_EQ(bar.groups[0].reason, "L['a'] == 1");
  const LogAnalysis redrawn = analyse("10%\r20%\r" + message);
  EXPECT_EQ(redrawn.total(LogKind::recompile), 1u);
  EXPECT_EQ(redrawn.lines, 3u);
  const LogAnalysis coloured =
      analyse("\x1b[33mskipping cudagraphs due to \x1b[1mmutated inputs (2 instances)\x1b[0m\n");
  ASSERT_EQ(coloured.groups.size(), 1u);
  EXPECT_EQ(coloured.groups[0].reason, "mutated inputs (2 instances)");
  EXPECT_EQ(parse_log_line("[rank3]:" + message).writer, "rank3/7");
}

TEST(CompileLog, CountsTruncatedRecords) {
  const LogAnalysis analysis = analyse(
      "torch._dynamo hit config.recompile_limit (8)\n"
      "V0628 10:00:00.123456 7 torch/_dynamo/guards.py:2830] [0/1] [__recompiles] Recompiling "
      "function f in /app/a.py:3\n"
      "torch._dynamo hit config.recompile_limit (8)\n   function: 'g' (/app");
  EXPECT_EQ(analysis.total(LogKind::limit_hit), 2u);
  EXPECT_EQ(analysis.total(LogKind::recompile), 1u);
  EXPECT_EQ(find(analysis, LogKind::recompile, "f", "")->reason, "");
  EXPECT_NE(table_text(analysis, "log").find("no reason in the log"), std::string::npos);
}

// PyTorch's source in a traceback is not an event, nor is prose about one.
TEST(CompileLog, IgnoresQuotedSourceCode) {
  const LogAnalysis analysis = analyse(
      "    \"torch._dynamo hit config.%s (%s)\\n\"\n"
      "    f\"Recompiling function {code.co_name} in "
      "{code.co_filename}:{code.co_firstlineno}\\n\"\n"
      "    return f\"skipping cudagraphs due to {reason}\"\n"
      "    unimplemented(\"Graph break under GenericContextWrappingVariable\")\n"
      "To log all recompilation reasons, use TORCH_LOGS=\"recompiles\".\n"
      "hint: set TORCH_LOGS=\"+dynamo\" for more\n");
  EXPECT_EQ(analysis.num_events(), 0u);
  EXPECT_FALSE(analysis.evidence());
}

TEST(CompileLog, GarbageBetweenRecordsChangesNothing) {
  const std::string log(kUserLog);
  std::string mixed;
  std::uint32_t state = 1;
  for (const char c : log) {
    mixed += c;
    if (c != '\n') continue;
    for (int i = 0; i < 2000; ++i) {
      state = state * 1664525 + 1013904223;
      mixed += static_cast<char>(state >> 24);
    }
    mixed += '\n';
  }
  const LogAnalysis clean = analyse(log), dirty = analyse(mixed);
  EXPECT_EQ(clean.totals, dirty.totals);
  ASSERT_EQ(clean.groups.size(), dirty.groups.size());
  for (std::size_t i = 0; i < clean.groups.size(); ++i) {
    EXPECT_EQ(clean.groups[i].function, dirty.groups[i].function);
    EXPECT_EQ(clean.groups[i].reason, dirty.groups[i].reason);
  }
}

// ------------------------------------------------------------------------- health and its proof

TEST(CompileLog, AnEmptyLogIsNotHealthy) {
  for (const char* log : {"", "epoch 1\nepoch 2\n", "\n\n\n"}) {
    const LogAnalysis analysis = analyse(log);
    EXPECT_FALSE(analysis.evidence());
    EXPECT_EQ(summary_of(analysis).find("healthy"), std::string::npos);
    EXPECT_NE(summary_of(analysis).find("does not prove"), std::string::npos);
  }
}

TEST(CompileLog, HealthyNeedsEvidenceThatLoggingWasOn) {
  for (const char* log :
       {"V0628 10:00:00.123456 7 torch/_dynamo/convert_frame.py:900] [0/0] Step 1: start tracing\n",
        "[2023-10-01 10:00:00,123] torch._dynamo.symbolic_convert: [DEBUG] TRACE LOAD_FAST x []\n",
        "V0628 10:00:00.123456 7 torch/_inductor/cudagraph_trees.py:400] [__cudagraphs] Recording "
        "function 0 of graph recording id 0\n",
        "[plans] plan 1: new shape class: 1 series\n"}) {
    const LogAnalysis analysis = analyse(log);
    EXPECT_TRUE(analysis.evidence()) << log;
    EXPECT_EQ(analysis.num_events(), 0u) << log;
    EXPECT_NE(summary_of(analysis).find("healthy as far as it was logged"), std::string::npos);
  }
  const LogAnalysis only_cudagraphs = analyse(
      "V0628 10:00:00.123456 7 torch/_inductor/cudagraph_trees.py:400] [__cudagraphs] Recording\n");
  EXPECT_NE(table_text(only_cudagraphs, "log").find("recompiles,graph_breaks"), std::string::npos);
}

// Only the output of a process proves that logging was enabled: commands, their failures, documents
// and text about the variable do not.
TEST(CompileLog, SettingTheVariableIsNotEvidence) {
  const std::string guide = io::contents_of(TOTO_SOURCE_DIR "/docs/correctness.md");
  ASSERT_NE(guide.find("TORCH_LOGS="), std::string::npos);
  for (const std::string& log :
       {std::string("+ TORCH_LOGS=\"recompiles,graph_breaks,cudagraphs\" python serve.py\n"
                    "Traceback (most recent call last):\n  File \"serve.py\", line 1, in <module>\n"
                    "ModuleNotFoundError: No module named 'torch'\n"),
        std::string("TORCH_LOGS=\"recompiles\" was not set\n"),
        std::string("export TORCH_LOGS=recompiles\nunset TORCH_LOGS\nready\n"),
        std::string("Environment=TORCH_LOGS=+dynamo\nENV TOTO_LOGS=plans\nready\n"),
        std::string("W0628 10:00:00.123456 7 torch/_dynamo/utils.py:9] TORCH_LOGS=recompiles\n"),
        guide}) {
    const LogAnalysis analysis = analyse(log);
    EXPECT_FALSE(analysis.evidence()) << log.substr(0, 100);
    EXPECT_NE(summary_of(analysis).find("does not prove"), std::string::npos);
  }
}

// PyTorch's message about an optional attention mask.
TEST(CompileLog, ClassifiesNoneVersusTensor) {
  const auto advice = [](const char* guard) {
    return analyse(recompile(7, "forward", "/m/attention.py:105", guard)).groups.at(0).advice;
  };
  const LogAdvice none = advice(
      "6/0: expected type of 'attention_mask' to be <class 'torch.Tensor'>, but found <class "
      "'NoneType'>");
  EXPECT_NE(none.why.find("None in another"), std::string::npos) << none.why;
  EXPECT_EQ(none.change.find("convert"), std::string::npos);
  EXPECT_EQ(advice("L['mask'] is not None").why, none.why);
  EXPECT_NE(advice("tensor 'L['x']' dtype mismatch. expected Float, actual Double").why, none.why);
}

TEST(CompileLog, ReadsOurOwnPlans) {
  const LogAnalysis analysis = analyse(
      "[plans] weights packed and kept\n"
      "[plans] plan 1: new shape class: 1 series of 1 variate\n"
      "[plans] replan 2: new shape class: 1 series of 9 variates\n"
      "[plans] replan 3: evicted: 1 series of 1 variate\n"
      "[plans] replan 4: cache file invalid: /c/schedules/x: checksum: 1 series of 2 variates\n");
  EXPECT_EQ(analysis.plans, 4u);
  EXPECT_EQ(analysis.total(LogKind::replan), 3u);
  const LogGroup* evicted = find(analysis, LogKind::replan, "1 series of 1 variate", "evicted");
  ASSERT_NE(evicted, nullptr);
  EXPECT_NE(evicted->advice.change.find("--plan-cache-size"), std::string::npos);
}

// -------------------------------------------------------------------------------------- bounds

TEST(CompileLog, KeepsABoundedNumberOfGroups) {
  CompileLogReader reader;
  constexpr std::uint64_t kFunctions = 3 * kMaxLogGroups;
  for (std::uint64_t i = 0; i < kFunctions; ++i) {
    reader.read(recompile(1, fmt::format("f{}", i), "/app/a.py:3", "0/0: L['n'] == 1"));
  }
  const LogAnalysis analysis = reader.finish();
  EXPECT_EQ(analysis.total(LogKind::recompile), kFunctions);
  EXPECT_TRUE(analysis.groups_full);
  EXPECT_LE(analysis.groups.size(), kMaxLogGroups + kNumLogKinds);
  std::uint64_t sum = 0;
  for (const LogGroup& group : analysis.groups) sum += group.count;
  EXPECT_EQ(sum, kFunctions);
}

TEST(CompileLog, ReadsOnlyTheBeginningOfALongLine) {
  const std::string mark = "skipping cudagraphs due to mutated inputs (2 instances)";
  EXPECT_EQ(analyse(mark + std::string(1 << 22, 'x')).total(LogKind::cudagraph_skip), 1u);
  const LogAnalysis late = analyse(std::string(1 << 22, 'x') + mark + "\n" + mark + "\n");
  EXPECT_EQ(late.total(LogKind::cudagraph_skip), 1u);
  EXPECT_EQ(late.lines, 2u);
}

TEST(CompileLog, FollowsMoreProcessesThanItRemembers) {
  std::string log;
  for (int pid = 0; pid < 500; ++pid) {
    log += recompile(1000 + pid, "f", "/app/a.py:3", "0/0: L['n'] == 1");
  }
  const LogAnalysis analysis = analyse(log);
  EXPECT_EQ(analysis.total(LogKind::recompile), 500u);
  EXPECT_EQ(analysis.groups.size(), 1u);
}

// ------------------------------------------------------------------------------------- reports

TEST(CompileLog, EscapesLogTextInMarkdown) {
  const LogAnalysis analysis =
      analyse("skipping cudagraphs due to <script>alert(1)</script> | [x](http://y) `a`\n");
  const std::string text = markdown_text(analysis, "a|b.log");
  EXPECT_EQ(text.find("<script>"), std::string::npos);
  EXPECT_EQ(text.find("[x]("), std::string::npos);
  EXPECT_NE(text.find("# Compile log a\\|b.log"), std::string::npos);
}

TEST(CompileLog, EveryGroupHasAdvice) {
  for (const LogKind kind : {LogKind::recompile, LogKind::limit_hit, LogKind::graph_break,
                             LogKind::cudagraph_skip, LogKind::replan}) {
    for (const char* reason : {"", "something new", "item", "size mismatch", "evicted"}) {
      const LogAdvice advice = advise({.kind = kind, .reason = reason});
      EXPECT_FALSE(advice.why.empty() || advice.change.empty() || advice.cost.empty() ||
                   advice.here.empty())
          << name_of(kind) << " " << reason;
    }
  }
}

}  // namespace
}  // namespace toto::compile_log
