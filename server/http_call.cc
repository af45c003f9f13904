#include "http_call.h"

#include <limits>
#include <new>
#include <utility>

#include "base/error.h"
#include "service_state.h"

namespace toto::server {

ReaderLimits reader_limits(ReaderThread thread) {
  constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
  switch (thread) {
    case ReaderThread::io:
      return {std::size_t{64} << 10, std::size_t{1} << 20};
    case ReaderThread::small_bodies:
      return {std::size_t{1} << 20, std::size_t{16} << 20};
    case ReaderThread::large_bodies:
      break;
  }
  return {kUnlimited, kUnlimited};
}

void HttpCall::send(HttpResponse response) {
  add_answer_headers(request, service.options.access, response);
  if (const Respond once = std::exchange(respond, {})) once(std::move(response));
}

void HttpCall::send_error(const Error& error) {
  send(error_response(status_of(error.code()), error.what()));
}

void HttpCall::guard(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    send_error(error);
  } catch (const std::bad_alloc&) {
    send(error_response(503, "not enough memory for this request; ask for less"));
  } catch (const std::exception& error) {
    send(error_response(
        500, fmt::format("internal: {}; this is a bug in toto, please report it", error.what())));
  }
}

Clock::time_point HttpCall::deadline() const { return request.received + service.options.deadline; }

bool HttpCall::is_unwanted() const {
  return service.cancelled || gone->load() || Clock::now() >= deadline();
}

void HttpCall::check_wanted() const {
  if (service.cancelled) fail(ErrorCode::cancelled, "the server is shutting down");
  if (gone->load()) fail(ErrorCode::cancelled, "the client has left");
  if (Clock::now() >= deadline()) {
    fail(ErrorCode::cancelled,
         "the request was not read in time; send less, or again when the server is less busy");
  }
}

RequestLimits HttpCall::limits() const {
  RequestLimits limits = service.options.limits;
  limits.max_series_bytes_here = reader_limits(reader).series;
  limits.memory = request.memory.get();
  limits.facts = service.scheduler->active().facts();
  return limits;
}

}  // namespace toto::server
