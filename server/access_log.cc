#include "access_log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "access.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "io/json.h"
#include "io/timestamps.h"

namespace toto::server {
namespace {

// Of what a client chose: a line must fit into what a pipe takes at once.
constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxMethod = 32;

bool is_file(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

AccessLog::AccessLog(const std::string& path, bool trust_proxy) : trust_proxy_(trust_proxy) {
  if (path.empty()) return;
  if (path == "-") {
    fd_ = STDERR_FILENO;
    return;
  }
  // A named pipe without a reader would keep us waiting.
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  if (fd_ < 0) {
    fail(ErrorCode::invalid_argument, "{}: the log cannot be written: {}", path,
         std::strerror(errno));
  }
  owned_ = true;
}

AccessLog::~AccessLog() {
  if (owned_) ::close(fd_);
}

void AccessLog::add(const Request& request, std::string_view route, const Response& response,
                    bool sent) {
  if (fd_ < 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ticks = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const double ms = milliseconds_since(request.received);
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object()
      .field("time", io::format_time(ticks, {.has_clock = true,
                                             .has_seconds = true,
                                             .fraction_digits = 6,
                                             .zone = io::TimeStyle::Zone::utc}))
      .field("peer", trust_proxy_ ? client_address(request) : request.peer)
      .field("method", std::string_view(request.method).substr(0, kMaxMethod))
      .field("path", std::string_view(request.path).substr(0, kMaxPath))
      .field("route", route)
      .field("status", response.status)
      .field("sent", sent)
      .field("ms", std::round(ms * 1000) / 1000);
  if (const auto trace = request.header("traceparent"); is_traceparent(trace)) {
    json.field("traceparent", trace);
  }
  json.end_object();
  std::string line = json.take();
  const std::lock_guard lock(mutex_);
  if (torn_) line.insert(0, 1, '\n');
  if (!write_line(line)) ++num_lost_;
}

bool AccessLog::write_line(std::string_view line) {
  // Room in a pipe is room for this much, and standard error may be a pipe that makes us wait for
  // the rest.
  if (line.size() > PIPE_BUF && !is_file(fd_)) return false;
  pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return false;
  const ssize_t written = ::write(fd_, line.data(), line.size());
  if (written <= 0) return false;
  const bool whole = written == static_cast<ssize_t>(line.size());
  // Half a line goes again. What has no length refuses that: the next line begins a new one.
  torn_ = !whole && ::ftruncate(fd_, ::lseek(fd_, 0, SEEK_CUR) - written) != 0;
  return whole;
}

}  // namespace toto::server
