// What a log tells about compiled code: recompilations, limits, graph breaks and skipped CUDA
// graphs as PyTorch 2.x prints them, and the plans of our own engine, mixed with any other output.
// Lines may be cut, interleaved, coloured or garbage; memory does not grow with the log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace toto::compile_log {

enum class LogKind { recompile, limit_hit, graph_break, cudagraph_skip, replan };
inline constexpr std::size_t kNumLogKinds = 5;
std::string_view name_of(LogKind kind) noexcept;  // "recompile", "limit_hit", ...

enum class Severity { critical, high, medium, low };
std::string_view name_of(Severity severity) noexcept;

// What to think of a group: from a table of known causes.
struct LogAdvice {
  Severity severity = Severity::medium;
  std::string_view why = {};
  std::string_view change = {};  // in PyTorch, or in our settings
  std::string_view cost = {};
  std::string_view here = {};  // what toto.cpp does in its place
};

// Everything of one kind, in one function, for one reason. Numbers that a reason compares with do
// not make another one: `idx == 7` and `idx == 8` are the same.
struct LogGroup {
  LogKind kind = LogKind::recompile;
  std::string function = {};  // empty where the log does not say
  std::string path = {};      // "/site-packages/toto/model/attention.py:105"
  std::string location = {};  // "attention.py:105", with folders where names alone are ambiguous
  std::string reason = {};    // of its first line
  std::string limit = {};     // "recompile_limit (8)", of limit hits
  std::uint64_t count = 0;
  std::uint64_t first_line = 0;  // from 1
  LogAdvice advice = {};
};

// Topics of TORCH_LOGS and TOTO_LOGS that were on, as far as the log shows.
struct LoggedTopics {
  bool recompiles = false, graph_breaks = false, cudagraphs = false, plans = false;
  bool any() const { return recompiles || graph_breaks || cudagraphs || plans; }
};

struct LogAnalysis {
  std::uint64_t lines = 0;
  std::uint64_t plans = 0;                              // made in all, replans among them
  std::uint64_t recognised = 0;                         // lines that begin a record
  std::array<std::uint64_t, kNumLogKinds> totals = {};  // by LogKind
  LoggedTopics topics = {};
  bool groups_full = false;           // the rest is counted under one group a kind
  std::vector<LogGroup> groups = {};  // the worst first

  std::uint64_t total(LogKind kind) const { return totals[static_cast<std::size_t>(kind)]; }
  std::uint64_t num_events() const;
  // That the compiler, or our engine, could have complained in this log.
  bool evidence() const { return topics.any() || recognised > 0; }
};

inline constexpr std::size_t kMaxLogLine = 16 * 1024;  // bytes looked at of one line
inline constexpr std::size_t kMaxLogGroups = 2000;

// Takes a log in pieces of any size. Not thread safe.
class CompileLogReader {
 public:
  CompileLogReader();
  ~CompileLogReader();
  CompileLogReader(const CompileLogReader&) = delete;
  CompileLogReader& operator=(const CompileLogReader&) = delete;

  void read(std::string_view bytes);
  LogAnalysis finish();  // once, at the end

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The cause that fits best.
LogAdvice advise(const LogGroup& group);

// `name` is the log's, for the headings.
std::string json_text(const LogAnalysis& analysis);
std::string markdown_text(const LogAnalysis& analysis, std::string_view name);
std::string table_text(const LogAnalysis& analysis, std::string_view name);
// One sentence: the verdict.
std::string summary_of(const LogAnalysis& analysis);

}  // namespace toto::compile_log
