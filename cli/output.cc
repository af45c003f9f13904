#include "cli/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string>& warnings() {
  static std::vector<std::string> printed;
  return printed;
}

[[noreturn]] void fail_for(const std::string& path, int error) {
  fail(ErrorCode::invalid_argument,
       "{}: cannot be written: {}; choose a file in a folder that can be written", path,
       std::generic_category().message(error));
}

}  // namespace

// One write per line: lines of several processes on one terminal do not mix. A closed stderr is
// ignored.
void print_line(std::string_view sentence) {
  const std::string line = one_line(sentence) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void print_warning(std::string_view sentence) {
  warnings().push_back(one_line(sentence));
  print_line(fmt::format("warning: {}", sentence));
}

std::span<const std::string> printed_warnings() { return warnings(); }

void print_warnings(std::span<const std::string> sentences) {
  for (const std::string& sentence : sentences) print_warning(sentence);
}

void write_stdout(std::string_view text) {
  static bool reader_is_gone = false;
  while (!text.empty() && !reader_is_gone) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      reader_is_gone = true;
    } else if (errno != EINTR) {
      fail(ErrorCode::out_of_memory, "cannot write to standard output: {}",
           std::generic_category().message(errno));
    }
  }
}

void check_writable(const std::string& path) {
  if (path == "-") return;
  if (path.empty() || path.ends_with('/')) {
    fail(ErrorCode::invalid_argument, "\"{}\" is not a file name; expected the path of a file",
         path);
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail_for(path, EISDIR);
    if (::access(path.c_str(), W_OK) != 0) fail_for(path, errno);
    if (!S_ISREG(status.st_mode)) return;  // a device or a pipe is written to as it is
  }
  // The nearest folder that exists: the ones below it will be made.
  fs::path folder = fs::absolute(path).parent_path();
  while (::stat(folder.c_str(), &status) != 0 && folder != folder.parent_path()) {
    if (errno != ENOENT) fail_for(path, errno);
    folder = folder.parent_path();
  }
  if (!S_ISDIR(status.st_mode)) fail_for(path, ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail_for(path, errno);
}

void check_outputs(const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& outputs) {
  const std::string no_file = "-";
  std::vector<NamedPath> taken = inputs;
  for (const NamedPath& output : outputs) {
    const std::string path = output.path.value_or(no_file);
    if (path == no_file) continue;
    check_writable(path);
    for (const NamedPath& other : taken) {
      const std::string other_path = other.path.value_or(no_file);
      if (other_path == no_file || !io::same_file(other_path, path)) continue;
      fail(ErrorCode::invalid_argument, "{} is {}, the file that {} names; expected another one",
           output.name, path, other.name);
    }
    taken.push_back(output);
  }
}

void check_report_name(const std::string& path,
                       std::initializer_list<std::string_view> extensions) {
  if (path == "-") {
    fail(ErrorCode::invalid_argument, "--report is -, expected a file: stdout has the table");
  }
  if (std::ranges::any_of(extensions, [&](auto end) { return path.ends_with(end); })) return;
  fail(ErrorCode::invalid_argument, "--report is {}, expected a name that ends in {}", quoted(path),
       alternatives(std::vector<std::string_view>(extensions)));
}

void ResultFiles::add(const std::string& path, std::string_view text) {
  add(path, [text](const io::FileSet::Sink& sink) { sink(text); });
}

void ResultFiles::add(const std::string& path,
                      const std::function<void(const io::FileSet::Sink&)>& write) {
  files_.add(path, write);
  paths_.push_back(path);
}

void ResultFiles::commit() {
  files_.commit();
  for (const std::string& path : paths_) print_line(fmt::format("written: {}", path));
}

void publish(ResultFiles& files, const std::optional<std::string>& json_path, std::string_view json,
             std::string_view text) {
  if (json_path && json_path != "-") files.add(*json_path, json);
  files.commit();
  write_stdout(json_path == "-" ? json : text);
}

void publish(const std::optional<std::string>& json_path, std::string_view json,
             std::string_view text) {
  ResultFiles files;
  publish(files, json_path, json, text);
}

}  // namespace toto::cli
