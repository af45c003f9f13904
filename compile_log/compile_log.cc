#include "compile_log/compile_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "compile_log/log_line.h"
#include "compile_log/log_record.h"

namespace toto::compile_log {
namespace {

constexpr std::size_t kMaxWriters = 64;  // processes whose records are followed at the same time
constexpr std::size_t kMaxNotices = 256;

// The last `folders` + 1 components of a path.
std::string end_of(std::string_view path, std::size_t folders) {
  std::size_t slash = path.rfind('/');
  while (folders-- > 0 && slash != std::string_view::npos && slash > 0) {
    slash = path.rfind('/', slash - 1);
  }
  if (slash == std::string_view::npos) return std::string(path);
  return std::string(path.substr(slash + 1));
}

// Sets the shortest path ends that distinguish files of the same name.
void set_locations(std::vector<LogGroup>& groups) {
  std::map<std::string, std::vector<LogGroup*>> by_name;
  for (LogGroup& group : groups) by_name[end_of(group.path, 0)].push_back(&group);
  for (auto& [name, same] : by_name) {
    std::size_t folders = 0;
    const auto ambiguous = [&] {
      return std::any_of(same.begin(), same.end(), [&](const LogGroup* group) {
        return group->path != same.front()->path &&
               end_of(group->path, folders) == end_of(same.front()->path, folders);
      });
    };
    constexpr std::size_t kMostFolders = 16;
    while (folders < kMostFolders && ambiguous()) ++folders;
    for (LogGroup* group : same) group->location = end_of(group->path, folders);
  }
}

}  // namespace

std::string_view name_of(LogKind kind) noexcept {
  constexpr std::string_view kNames[] = {"recompile", "limit_hit", "graph_break", "cudagraph_skip",
                                         "replan"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Severity severity) noexcept {
  constexpr std::string_view kNames[] = {"critical", "high", "medium", "low"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::uint64_t LogAnalysis::num_events() const {
  return std::accumulate(totals.begin(), totals.end(), std::uint64_t{0});
}

// Lines of several processes may be interleaved: each writer has its own unfinished record. At most
// kMaxWriters records, kMaxNotices notices and kMaxLogGroups groups are kept, so memory is bounded.
struct CompileLogReader::Impl {
  // The unfinished record of one process.
  struct Writer {
    std::string name;
    std::string source;  // of the record's first line; another source begins another record
    LogRecord record;
    std::uint64_t last_line = 0;
  };

  void take_line(std::string_view bytes);
  void take_text(const LogLine& line);
  bool continue_record(const LogLine& line);
  Writer& writer_of(const LogLine& line);
  void add(LogRecord& record);
  void close(LogRecord& record);
  void add_notices();
  void note_topics(const LogLine& line);

  LogAnalysis analysis;
  std::vector<Writer> writers;
  std::vector<LogRecord> notices;
  std::map<std::string, std::size_t, std::less<>> group_index;
  std::map<std::string, std::string, std::less<>> functions;  // of graph breaks, by place
  std::string line;        // the line being read, at most kMaxLogLine bytes
  bool has_bytes = false;  // since the last line end
  std::uint64_t line_number = 1;
};

// Counts a complete record.
void CompileLogReader::Impl::add(LogRecord& record) {
  if (!record.kind) return;
  const LogKind kind = *record.kind;
  record.kind.reset();
  ++analysis.totals[static_cast<std::size_t>(kind)];
  LogGroup group{.kind = kind,
                 .function = one_line(record.function),
                 .path = one_line(record.path),
                 .reason = one_line(record.reason),
                 .limit = one_line(record.limit),
                 .first_line = record.first_line};
  // Repeated graph breaks are logged without a stack; their source line identifies the function.
  if (kind == LogKind::graph_break && !group.path.empty()) {
    if (group.function.empty()) {
      if (const auto known = functions.find(group.path); known != functions.end()) {
        group.function = known->second;
      }
    } else if (functions.size() < kMaxLogGroups) {
      functions.emplace(group.path, group.function);
    }
  }
  std::string key = fmt::format("{}\n{}\n{}\n{}", name_of(kind), group.function, group.path,
                                without_values(group.reason));
  auto found = group_index.find(key);
  if (found == group_index.end() && analysis.groups.size() >= kMaxLogGroups) {
    analysis.groups_full = true;
    key = name_of(kind);
    group.function.clear();
    group.path.clear();
    group.reason = fmt::format("further groups, after the first {}", kMaxLogGroups);
    found = group_index.find(key);
  }
  if (found == group_index.end()) {
    found = group_index.emplace(std::move(key), analysis.groups.size()).first;
    analysis.groups.push_back(std::move(group));
  }
  ++analysis.groups[found->second].count;
}

// Ends a record: an event is counted now, a notice only at the end, when it is known whether graph
// breaks were logged.
void CompileLogReader::Impl::close(LogRecord& record) {
  if (!record.is_notice) {
    add(record);
  } else if (notices.size() < kMaxNotices) {  // PyTorch warns once a process
    notices.push_back(std::exchange(record, {}));
  }
}

// If graph breaks were logged, each notice repeats one that is counted already.
void CompileLogReader::Impl::add_notices() {
  if (analysis.topics.graph_breaks) return;
  for (LogRecord& notice : notices) add(notice);
}

// The writer of a line; if there are too many, replaces the one that was silent for longest.
CompileLogReader::Impl::Writer& CompileLogReader::Impl::writer_of(const LogLine& from) {
  const auto known = std::find_if(writers.begin(), writers.end(),
                                  [&](const Writer& writer) { return writer.name == from.writer; });
  if (known != writers.end()) return *known;
  if (writers.size() < kMaxWriters) {
    writers.push_back({.name = from.writer, .source = {}, .record = {}});
    return writers.back();
  }
  Writer& oldest =
      *std::min_element(writers.begin(), writers.end(),
                        [](const Writer& a, const Writer& b) { return a.last_line < b.last_line; });
  close(oldest.record);
  oldest = {.name = from.writer, .source = {}, .record = {}};
  return oldest;
}

// Some versions print no prefix on the later lines of a message: such a line belongs to the latest
// record that accepts it.
bool CompileLogReader::Impl::continue_record(const LogLine& from) {
  Writer& own = writer_of(from);
  if (own.source == from.source && continue_with(own.record, from)) {
    own.last_line = line_number;
    return true;
  }
  if (from.has_prefix()) return false;
  Writer* latest = nullptr;
  for (Writer& writer : writers) {
    if (writer.record.kind && (latest == nullptr || writer.last_line > latest->last_line)) {
      latest = &writer;
    }
  }
  return latest != nullptr && continue_with(latest->record, from);
}

// Collects which topics of TORCH_LOGS and TOTO_LOGS were enabled.
void CompileLogReader::Impl::note_topics(const LogLine& from) {
  const LoggedTopics shown = topics_shown(from);
  analysis.topics.recompiles |= shown.recompiles;
  analysis.topics.graph_breaks |= shown.graph_breaks;
  analysis.topics.cudagraphs |= shown.cudagraphs;
  analysis.topics.plans |= shown.plans;
}

// Handles one line: a plan of this engine, the first line of a record, or the continuation of one.
void CompileLogReader::Impl::take_text(const LogLine& from) {
  note_topics(from);
  if (const auto plan = parse_plan(from.text)) {
    ++analysis.recognised;
    if (plan->is_plan) ++analysis.plans;
    if (plan->replan) {
      LogRecord record = *plan->replan;
      record.first_line = line_number;
      add(record);
    }
    return;
  }
  if (std::optional<LogRecord> record = begin_record(from.text)) {
    Writer& writer = writer_of(from);
    const bool goes_on = writer.record.kind && writer.record.is_notice &&
                         writer.source == from.source && !record->placed;
    if (goes_on && record->kind == LogKind::graph_break)
      return;  // "from user code at:" of a notice
    ++analysis.recognised;
    record->first_line = line_number;
    // Both are logged only if requested.
    analysis.topics.recompiles |= record->kind == LogKind::recompile;
    analysis.topics.graph_breaks |= record->kind == LogKind::graph_break && !record->is_notice;
    close(writer.record);
    writer.record = std::move(*record);
    writer.source = from.source;
    writer.last_line = line_number;
    return;
  }
  continue_record(from);
}

// Completes the current line with `bytes`; anything beyond kMaxLogLine is ignored.
void CompileLogReader::Impl::take_line(std::string_view bytes) {
  line.append(bytes.substr(0, kMaxLogLine - std::min(kMaxLogLine, line.size())));
  if (line.empty()) return;
  remove_colours(line);
  take_text(parse_log_line(line));
  line.clear();
}

CompileLogReader::CompileLogReader() : impl_(std::make_unique<Impl>()) {}
CompileLogReader::~CompileLogReader() = default;

// A carriage return also ends a line, because progress bars use it, but it is not counted: line
// numbers match those of an editor.
void CompileLogReader::read(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\n\r");
    if (end == std::string_view::npos) {
      impl_->line.append(bytes.substr(0, kMaxLogLine - std::min(kMaxLogLine, impl_->line.size())));
      impl_->has_bytes = true;
      return;
    }
    impl_->take_line(bytes.substr(0, end));
    impl_->has_bytes = bytes[end] != '\n';
    if (bytes[end] == '\n') ++impl_->line_number;
    bytes.remove_prefix(end + 1);
  }
}

// Most severe groups first, then the most frequent, then in order of appearance.
LogAnalysis CompileLogReader::finish() {
  impl_->take_line({});
  for (Impl::Writer& writer : impl_->writers) impl_->close(writer.record);
  impl_->add_notices();
  LogAnalysis& analysis = impl_->analysis;
  analysis.lines = impl_->line_number - (impl_->has_bytes ? 0 : 1);
  set_locations(analysis.groups);
  for (LogGroup& group : analysis.groups) group.advice = advise(group);
  std::sort(analysis.groups.begin(), analysis.groups.end(),
            [](const LogGroup& a, const LogGroup& b) {
              return std::tuple(a.advice.severity, b.count, a.first_line, a.kind) <
                     std::tuple(b.advice.severity, a.count, b.first_line, b.kind);
            });
  return std::move(analysis);
}

}  // namespace toto::compile_log
