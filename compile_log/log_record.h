// Parses the records of a log line by line: how a record begins, and which later lines add to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compile_log/compile_log.h"
#include "compile_log/log_line.h"

namespace toto::compile_log {

// A record as far as it has been read; unknown parts are empty.
struct LogRecord {
  std::optional<LogKind> kind = {};  // empty: no record has begun
  std::string function = {};
  std::string path = {};  // "file.py:105"
  std::string reason = {};
  std::string limit = {};
  bool placed = false;        // `path` is final: the first line named it
  bool guards_begun = false;  // recompile: the next item of the list is its first guard
  bool in_traceback = false;  // PyTorch's own frames follow, not the user's
  bool announced = false;     // graph break: the next line that is not blank is the reason
  // A warning that repeats a graph break if graph breaks are logged.
  bool is_notice = false;
  std::uint64_t first_line = 0;
};

// The record that `text` begins, if it begins one.
std::optional<LogRecord> begin_record(std::string_view text);

// Adds the information of a line to a record that has begun; false if there is none.
bool continue_with(LogRecord& record, const LogLine& line);

// A line of TOTO_LOGS=plans: "[plans] replan 3: evicted: ...", or a message about packed weights or
// schedules.
struct PlanLine {
  bool is_plan = false;
  std::optional<LogRecord> replan = {};
};
std::optional<PlanLine> parse_plan(std::string_view text);

// Topics that this line proves to be enabled, by its tag or by a message that is printed only then.
// A command that sets TORCH_LOGS proves nothing: the program may have ended before it logged, or
// the line may be part of a document.
LoggedTopics topics_shown(const LogLine& line);

// Replaces the numbers that a reason compares with by '#'; indices in brackets stay.
std::string without_values(std::string_view reason);

}  // namespace toto::compile_log
