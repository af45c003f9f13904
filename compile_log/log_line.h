// One line of a log that several programs may have written: its writer and its text.
#pragma once

#include <string>
#include <string_view>

namespace toto::compile_log {

// A line split into PyTorch's logging prefix and the text. Views of the line.
struct LogLine {
  // "12345", "rank0/12345": the process, to separate the lines of several processes. Empty for
  // lines without a prefix.
  std::string writer = {};
  std::string_view source = {};    // "torch/_dynamo/guards.py:2830", or the logger's name
  std::string_view artifact = {};  // "recompiles" of "[__recompiles]"
  std::string_view text = {};      // the rest, leading blanks included
  bool is_detail = false;          // of the lowest level, which is printed only if requested

  bool has_prefix() const { return !source.empty(); }
};

// Understands "V0628 10:00:00.000000 123 torch/_dynamo/guards.py:2830] [0/1] [__recompiles] text"
// (2.2 and later), "[2023-10-01 10:00:00,123] [0/1] torch._dynamo.guards.__recompiles: [DEBUG]
// text" (before), also after a progress bar or another program's text. Any other line has no
// prefix.
LogLine parse_log_line(std::string_view line);

// Removes escape sequences that colour a terminal, in place.
void remove_colours(std::string& line);

}  // namespace toto::compile_log
