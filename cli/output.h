// Output of the process: results on stdout or in a file, remarks on stderr.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_set.h"

namespace toto::cli {

void print_line(std::string_view sentence);     // on stderr, made one line that is safe to print
void print_warning(std::string_view sentence);  // `warning: ...` on stderr
void print_warnings(std::span<const std::string> sentences);
// Every warning printed so far: the "warnings" of a command's JSON.
std::span<const std::string> printed_warnings();

// A closed pipe (`| head -1`) ends the output silently; any other failure is an Error.
void write_stdout(std::string_view text);

// Throws what writing the file would throw because of its path, before its contents are computed:
// it is a folder, or its folder cannot be written to. "-" is standard output.
void check_writable(const std::string& path);

// A path and the flag it came from; "-" and an absent one do not name a file.
struct NamedPath {
  std::string name;  // "--output", "the input"
  std::optional<std::string> path;
};
// check_writable for each output; no output may be an input or another output, also by a link or
// another name: Error(invalid_argument).
void check_outputs(const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& outputs);

// --report must be a file with one of these extensions: Error(invalid_argument).
void check_report_name(const std::string& path, std::initializer_list<std::string_view> extensions);

// The files of a command's result: all of them appear, or none (io::FileSet). Lines on stderr name
// them.
class ResultFiles {
 public:
  void add(const std::string& path, std::string_view text);
  void add(const std::string& path, const std::function<void(const io::FileSet::Sink&)>& write);
  void commit();

 private:
  io::FileSet files_;
  std::vector<std::string> paths_;
};

// The result of a command that reports: `text` for people on stdout, `json` where --json says, and
// nothing but JSON on stdout when that is "-".
void publish(const std::optional<std::string>& json_path, std::string_view json,
             std::string_view text);
// Together with other files, which --json follows.
void publish(ResultFiles& files, const std::optional<std::string>& json_path, std::string_view json,
             std::string_view text);

}  // namespace toto::cli
