#include "line_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace toto::server {
namespace {

bool is_file(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

int open_log(const std::string& path) {
  // Non-blocking: opening a named pipe without a reader would wait.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  if (fd < 0) {
    fail(ErrorCode::invalid_argument, "{}: the log cannot be written: {}", path,
         std::strerror(errno));
  }
  return fd;
}

}  // namespace

LineOutput::LineOutput(const std::string& path) : fd_(open_log(path)), path_(path) {}

LineOutput::~LineOutput() {
  if (!path_.empty()) ::close(fd_);
}

void LineOutput::reopen() {
  if (path_.empty()) return;
  const int fd = open_log(path_);
  const std::lock_guard lock(mutex_);
  ::close(std::exchange(fd_, fd));
  torn_ = false;
}

LineOutput& LineOutput::standard_error() {
  static LineOutput output(STDERR_FILENO);
  return output;
}

bool LineOutput::write(std::string line) {
  const std::lock_guard lock(mutex_);
  if (torn_) line.insert(0, 1, '\n');
  // POLLOUT promises room for PIPE_BUF bytes only; a longer write to a pipe may block.
  if (line.size() > PIPE_BUF && !is_file(fd_)) return false;
  pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return false;
  const ssize_t written = ::write(fd_, line.data(), line.size());
  if (written <= 0) return false;
  const bool whole = written == static_cast<ssize_t>(line.size());
  // Removes half a line; where that is impossible (a pipe), the next line starts with a line feed.
  torn_ = !whole && ::ftruncate(fd_, ::lseek(fd_, 0, SEEK_CUR) - written) != 0;
  return whole;
}

}  // namespace toto::server
