// The records of a log, line by line: how one begins, and which of the lines after it add to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compile_log/compile_log.h"
#include "compile_log/log_line.h"

namespace toto::compile_log {

// What is known so far. Empty parts are those the log has not told yet.
struct LogRecord {
  std::optional<LogKind> kind = {};  // nothing: no record is under way
  std::string function = {};
  std::string path = {};  // "file.py:105"
  std::string reason = {};
  std::string limit = {};
  bool placed = false;        // `path` is final: the first line named it
  bool guards_begun = false;  // of a recompile: the next item of the list is its first guard
  bool in_traceback = false;  // PyTorch's own frames follow, not the user's
  bool announced = false;     // of a graph break: the next line that says something is the reason
  // A warning that stands beside the record of the same graph break where those are logged.
  bool is_notice = false;
  std::uint64_t first_line = 0;
};

// The record that `text` begins, if it begins one.
std::optional<LogRecord> begin_record(std::string_view text);

// Adds what the line tells to a record under way; false if it tells nothing.
bool continue_with(LogRecord& record, const LogLine& line);

// A line of TOTO_LOGS=plans: "[plans] replan 3: evicted: ...", or what was packed and measured.
struct PlanLine {
  bool is_plan = false;
  std::optional<LogRecord> replan = {};
};
std::optional<PlanLine> parse_plan(std::string_view text);

// Which topics were switched on, as far as this line shows: by its tag, or by a message that is
// printed only then. A command that sets TORCH_LOGS shows nothing: what it started may have ended
// before it could log, or the line may be a document's.
LoggedTopics topics_shown(const LogLine& line);

// A reason without the numbers it compares with; indices in brackets stay.
std::string without_values(std::string_view reason);

}  // namespace toto::compile_log
