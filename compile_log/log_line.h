// One line of a log that several programs may have written: who wrote it, and what it says.
#pragma once

#include <string>
#include <string_view>

namespace toto::compile_log {

// What PyTorch's logging puts before every line of a message. Views into the line.
struct LogLine {
  // "12345", "rank0/12345": the process, so that lines of several of them can be told apart. Empty
  // for lines without such a beginning.
  std::string writer = {};
  std::string_view source = {};    // "torch/_dynamo/guards.py:2830", or the logger's name
  std::string_view artifact = {};  // "recompiles" of "[__recompiles]"
  std::string_view text = {};      // what remains, blanks in front included
  bool is_detail = false;          // of the lowest level, which is printed on request only

  bool has_prefix() const { return !source.empty(); }
};

// Understands "V0628 10:00:00.000000 123 torch/_dynamo/guards.py:2830] [0/1] [__recompiles] text"
// (2.2 and later), "[2023-10-01 10:00:00,123] [0/1] torch._dynamo.guards.__recompiles: [DEBUG]
// text" (before), each also behind a progress bar's or another program's text. Any other line is
// its own text.
LogLine parse_log_line(std::string_view line);

// Removes escape sequences that colour a terminal, in place.
void remove_colours(std::string& line);

}  // namespace toto::compile_log
