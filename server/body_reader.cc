#include "body_reader.h"

#include <utility>

#include "base/error.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "decompress.h"
#include "memory_budget.h"
#include "request_head.h"
#include "service_state.h"

namespace toto::server {
namespace {

// Freed memory that is worth returning to the system.
constexpr std::size_t kTrimBytes = std::size_t{64} << 20;

enum class BodyState { ready, too_large_here, refused };

// Replaces the body by its decompressed form; a refusal has been answered.
BodyState decompress_body(HttpCall& call) {
  const std::vector<std::string> codings = content_codings(call.request);
  if (call.is_decompressed || codings.empty()) return BodyState::ready;
  const std::size_t most_here = reader_limits(call.reader).body;
  const std::size_t most = call.service.options.limits.max_body;
  MemoryShare* const memory = call.request.memory.get();
  std::size_t taken = 0;
  BodyState state = BodyState::ready;
  const auto refuse = [&](int status, std::string_view sentence) {
    call.send(error_response(status, sentence));
    state = BodyState::refused;
  };
  if (codings.size() > 1 || !is_known_coding(codings.front())) {
    HttpResponse refusal = error_response(
        415, fmt::format("Content-Encoding is {}, expected one of gzip, deflate and zstd",
                         quoted(fmt::format("{}", fmt::join(codings, ", ")))));
    refusal.headers.push_back({"Accept-Encoding", "gzip, deflate, zstd"});
    call.send(std::move(refusal));
    return BodyState::refused;
  }
  std::optional<std::string> body =
      decompress(call.request.body, codings.front(), [&](std::size_t bytes) {
        call.check_wanted();
        if (bytes > most - taken) {
          refuse(413, fmt::format("the decompressed body is larger than {} bytes; send fewer "
                                  "series per request",
                                  most));
        } else if (bytes > most_here - taken) {
          state = BodyState::too_large_here;
        } else if (memory != nullptr && !memory->take(bytes)) {
          refuse(503, kTooManyBodies);
        } else {
          taken += bytes;
        }
        return state == BodyState::ready;
      });
  if (body) {
    call.request.body = std::move(*body);
    call.is_decompressed = true;
  } else if (memory != nullptr) {
    memory->give_back(taken);
  }
  return state;
}

void read_here(const HttpCallPtr& call, const ParseBody& parse);

void read_on(ReaderThread thread, const HttpCallPtr& call, const ParseBody& parse) {
  call->reader = thread;
  ServiceState& service = call->service;
  Workers& workers =
      thread == ReaderThread::large_bodies ? service.large_bodies : service.small_bodies;
  const auto task = [call, parse] { call->guard([&] { read_here(call, parse); }); };
  const auto late = [call] { call->guard([&] { call->check_wanted(); }); };
  if (!workers.try_post(task, {call->deadline(), late})) {
    call->send(error_response(503, "too many requests are being read; try again"));
  }
}

void read_here(const HttpCallPtr& call, const ParseBody& parse) {
  call->check_wanted();
  const BodyState state = decompress_body(*call);
  if (state == BodyState::too_large_here) return read_on(ReaderThread::large_bodies, call, parse);
  if (state == BodyState::refused) return;
  const std::size_t body_bytes = call->request.body.size();
  if (const std::size_t series_bytes = parse(); series_bytes > 0) {
    const bool large = series_bytes > reader_limits(ReaderThread::small_bodies).series;
    return read_on(large ? ReaderThread::large_bodies : ReaderThread::small_bodies, call, parse);
  }
  count_freed(call->service, body_bytes);
}

}  // namespace

void read_body(const HttpCallPtr& call, const ParseBody& parse) {
  const std::size_t bytes = call->request.body.size();
  const bool plain = content_codings(call->request).empty();
  if (bytes > reader_limits(ReaderThread::small_bodies).body) {
    return read_on(ReaderThread::large_bodies, call, parse);
  }
  if (bytes > reader_limits(ReaderThread::io).body || !plain) {
    return read_on(ReaderThread::small_bodies, call, parse);
  }
  read_here(call, parse);
}

void count_freed(ServiceState& service, std::size_t bytes) {
  if (bytes < reader_limits(ReaderThread::small_bodies).body) return;
  if (service.freed_bytes.fetch_add(bytes) + bytes < kTrimBytes) return;
  service.freed_bytes = 0;
  release_freed_memory();
}

}  // namespace toto::server
