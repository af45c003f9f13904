// Lines for the operator. A stalled reader or a full disk never blocks the service: a line that
// cannot be written immediately and completely is dropped.
#pragma once

#include <mutex>
#include <string>

namespace toto::server {

// Thread safe.
class LineOutput {
 public:
  LineOutput() = default;  // writes nothing
  // A file, or a named pipe. Error(invalid_argument) if it cannot be opened.
  explicit LineOutput(const std::string& path);
  ~LineOutput();
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;
  // One for the process: checking a pipe for room is safe only with a single writer.
  static LineOutput& standard_error();

  // After a rotation. If it fails, lines continue to the old file.
  void reopen();
  bool write(std::string line);  // with its line feed; false if it was dropped

 private:
  explicit LineOutput(int fd) : fd_(fd) {}

  int fd_ = -1;
  std::string path_;   // of a file opened here; otherwise empty
  bool torn_ = false;  // the file ends with half a line
  std::mutex mutex_;
};

}  // namespace toto::server
