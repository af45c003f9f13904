// What leaves the process: results on stdout or in a file, remarks on stderr.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace toto::cli {

void print_line(std::string_view sentence);     // on stderr, made one line that is safe to print
void print_warning(std::string_view sentence);  // `warning: ...` on stderr

// A reader that has had enough (`| head -1`) ends the output without a complaint, everything else
// that keeps it from being written is an Error.
void write_stdout(std::string_view text);

// Throws what writing the file would throw because of its path, before hours are spent on its
// contents: it is a folder, or its folder cannot be written to. "-", standard output, is fine.
void check_writable(const std::string& path);

// A path and the flag it came from; "-" and an absent one stand for no file.
struct NamedPath {
  std::string name;  // "--output", "the input"
  std::optional<std::string> path;
};
// check_writable for each output, and no output may be another one or an input, by whatever name or
// link: Error(invalid_argument).
void check_outputs(const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& outputs);

// Atomically, and says so on stderr.
void write_result(const std::string& path, std::string_view text);
void print_written(std::string_view path);

// The result of a command that reports: `text` for people on stdout, `json` where --json says, and
// nothing but JSON on stdout when that is "-".
void publish(const std::optional<std::string>& json_path, std::string_view json,
             std::string_view text);

}  // namespace toto::cli
