// Analyses logs of torch.compile (PyTorch 2.x) for recompilations, limit hits, graph breaks and
// skipped CUDA graphs, and of this engine for plans, mixed with any other output. Lines may be cut,
// interleaved, coloured or garbage; memory does not grow with the log.
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

// Cause and remedy of a group, from a table of known causes.
struct LogAdvice {
  Severity severity = Severity::medium;
  std::string_view why = {};
  std::string_view change = {};  // in PyTorch, or in the settings of this engine
  std::string_view cost = {};
  std::string_view here = {};  // how toto.cpp avoids it
};

// All events of one kind, in one function, for one reason. Reasons that differ only in the numbers
// they compare with (`idx == 7`, `idx == 8`) are the same.
struct LogGroup {
  LogKind kind = LogKind::recompile;
  std::string function = {};  // empty if the log does not name it
  std::string path = {};      // "/site-packages/toto/model/attention.py:105"
  std::string location = {};  // "attention.py:105", with folders if the name is ambiguous
  std::string reason = {};    // its first line
  std::string limit = {};     // "recompile_limit (8)", for limit hits
  std::uint64_t count = 0;
  std::uint64_t first_line = 0;  // from 1
  LogAdvice advice = {};
};

// Topics of TORCH_LOGS and TOTO_LOGS that were evidently enabled.
struct LoggedTopics {
  bool recompiles = false, graph_breaks = false, cudagraphs = false, plans = false;
  bool any() const { return recompiles || graph_breaks || cudagraphs || plans; }
};

struct LogAnalysis {
  std::uint64_t lines = 0;
  std::uint64_t plans = 0;                              // plans made, including replans
  std::uint64_t recognised = 0;                         // lines that began a record
  std::array<std::uint64_t, kNumLogKinds> totals = {};  // by LogKind
  LoggedTopics topics = {};
  bool groups_full = false;           // further events are counted in one group per kind
  std::vector<LogGroup> groups = {};  // most severe first

  std::uint64_t total(LogKind kind) const { return totals[static_cast<std::size_t>(kind)]; }
  std::uint64_t num_events() const;
  // Whether the log shows that problems would have been logged.
  bool evidence() const { return topics.any() || recognised > 0; }
};

inline constexpr std::size_t kMaxLogLine = 16 * 1024;  // bytes examined per line
inline constexpr std::size_t kMaxLogGroups = 2000;

// Reads a log in pieces of any size. Not thread-safe.
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

// The first matching row of the table of causes.
LogAdvice advise(const LogGroup& group);

// `name` is the log's name, for headings.
std::string json_text(const LogAnalysis& analysis);
std::string markdown_text(const LogAnalysis& analysis, std::string_view name);
std::string table_text(const LogAnalysis& analysis, std::string_view name);
// The verdict in one sentence.
std::string summary_of(const LogAnalysis& analysis);

}  // namespace toto::compile_log
