#include "access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "io/json.h"
#include "io/timestamps.h"

namespace toto::server {

AccessLog::AccessLog(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") {
    fd_ = STDERR_FILENO;
    return;
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
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
  const double ms =
      std::chrono::duration<double, std::milli>(Clock::now() - request.received).count();
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object()
      .field("time", io::format_time(ticks, {.has_clock = true,
                                             .has_seconds = true,
                                             .fraction_digits = 6,
                                             .zone = io::TimeStyle::Zone::utc}))
      .field("peer", request.peer)
      .field("method", request.method)
      .field("path", request.path)
      .field("route", route)
      .field("status", response.status)
      .field("sent", sent)
      .field("ms", std::round(ms * 1000) / 1000);
  if (const auto trace = request.header("traceparent"); !trace.empty()) {
    json.field("traceparent", trace);
  }
  json.end_object();
  const std::string line = json.take();
  const std::lock_guard lock(mutex_);
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ++num_lost_;
}

}  // namespace toto::server
