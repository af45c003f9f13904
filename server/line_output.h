// Lines for whoever watches the service. A reader that stalls or a disk that is full never stops
// it: a line that cannot be written at once, as a whole, is not written.
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
  // One for the process: who looks for room in a pipe must be the only one to fill it.
  static LineOutput& standard_error();

  // After somebody moved the file away. If that fails, lines go on where they went.
  void reopen();
  bool write(std::string line);  // with its line feed; false if it is lost

 private:
  explicit LineOutput(int fd) : fd_(fd) {}

  int fd_ = -1;
  std::string path_;   // of a file of its own; empty for others'
  bool torn_ = false;  // it ends with half a line
  std::mutex mutex_;
};

}  // namespace toto::server
