#include "access_log.h"

#include <cmath>

#include "access.h"
#include "base/stopwatch.h"
#include "io/json.h"
#include "tables/timestamps.h"

namespace toto::server {
namespace {

// Texts from the client are cut: a line must fit into one atomic write to a pipe.
constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxMethod = 32;

}  // namespace

AccessLog::AccessLog(const std::string& path, bool trust_proxy) : trust_proxy_(trust_proxy) {
  if (path.empty()) return;
  out_ = path == "-" ? &LineOutput::standard_error() : &file_.emplace(path);
}

void AccessLog::add(const HttpRequest& request, std::string_view route,
                    const HttpResponse& response, bool sent) {
  if (out_ == nullptr) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ticks = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const double ms = milliseconds_since(request.received);
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object()
      .field("time", tables::format_time(ticks, {.has_clock = true,
                                                 .has_seconds = true,
                                                 .fraction_digits = 6,
                                                 .zone = tables::TimeStyle::Zone::utc}))
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
  if (!out_->write(json.take())) ++num_lost_;
}

}  // namespace toto::server
