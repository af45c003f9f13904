#include "serve_settings.h"

#include <arpa/inet.h>

#include <utility>

namespace toto::server {
namespace {

using io::Json;
using settings::kFile;
using settings::kFlag;
using ServeRows = settings::Rows<ServeSettings>;

constexpr double kKilobyte = 1024, kGigabyte = 0x1p30, kTerabyte = 0x1p40;

bool is_address(std::string_view text) {
  const std::string host(text);
  in6_addr room{};
  return host == "localhost" || ::inet_pton(AF_INET, host.c_str(), &room) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

// What a browser can send: anything else would never match.
bool is_origin(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view host = text.substr(scheme.size());
    return !host.empty() &&
           host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") == host.npos &&
           !host.ends_with(scheme == "http://" ? ":80" : ":443");
  }
  return false;
}

std::vector<ServeField> serve_rows() {
  constexpr double kMost = 1'000'000, kMostKept = 100'000, kDay = 86'400;
  std::vector<ServeField> rows;
  rows.push_back(ServeRows::text<[](auto& s) -> auto& { return s.http.host; }>("host")
                     .words("H", "address to listen on",
                            "other than loopback only with a key, or behind a proxy")
                     .only(is_address, "an address such as 127.0.0.1 or ::"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.http.port; }>("port", 0, 65'535)
                     .words("N", "port to listen on; 0: any free one"));
  rows.push_back(
      ServeRows::text<[](auto& s) -> auto& { return s.service.access.api_key; }>("api_key")
          .words("K", "key that clients send as Authorization: Bearer K",
                 "a file keeps it off the list of processes")
          .or_else("none"));
  rows.back().secret = true;
  rows.push_back(ServeRows::text<&ServeSettings::api_key_file>("api_key_file")
                     .words("FILE", "file with the key")
                     .or_else("none"));
  rows.push_back(ServeRows::text<[](auto& s) -> auto& { return s.http.tls_cert; }>("tls_cert")
                     .words("FILE", "certificate chain, PEM; needs --tls-key")
                     .or_else("none"));
  rows.push_back(ServeRows::text<[](auto& s) -> auto& { return s.http.tls_key; }>("tls_key")
                     .words("FILE", "private key of the certificate, PEM")
                     .or_else("none"));
  rows.push_back(
      ServeRows::text<[](auto& s) -> auto& { return s.service.access.cors; }>("cors")
          .words("ORIGIN", "origin whose pages may send requests")
          .only(is_origin,
                "an origin as browsers send it, such as https://example.org: scheme and host in "
                "lower case, no path")
          .or_else("none"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.service.scheduler.max_queued; }>(
                     "queue", 1, kMost)
                     .words("N", "requests that may wait"));
  rows.push_back({{.name = "deadline",
                   .type = settings::Type::whole,
                   .low = 1,
                   .high = kDay,
                   .placeholder = "S",
                   .help = "seconds a request may take"},
                  [](ServeSettings& s, const Json& value) {
                    s.service.deadline = std::chrono::seconds(value.integer);
                  },
                  [](const ServeSettings& s) {
                    using std::chrono::duration_cast, std::chrono::seconds;
                    return io::json_number(
                        static_cast<double>(duration_cast<seconds>(s.service.deadline).count()));
                  }});
  rows.push_back(ServeRows::bytes<[](auto& s) -> auto& { return s.service.limits.max_body; }>(
                     "max_body", kKilobyte, 16 * kGigabyte)
                     .words("SIZE", "bytes of a request, also decompressed: 64K, 256M, 1G"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.service.limits.max_series; }>(
                     "max_series", 1, kMost)
                     .words("N", "series of a request"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.service.limits.max_horizon; }>(
                     "max_horizon", 1, kMaxHorizon)
                     .words("N", "largest horizon of a request"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.service.limits.max_samples; }>(
                     "max_samples", 1, kMaxSamples)
                     .words("N", "most sampled paths of a request"));
  rows.push_back(ServeRows::bytes<[](auto& s) -> auto& { return s.service.limits.max_memory; }>(
                     "max_memory", kKilobyte, kTerabyte)
                     .words("SIZE", "bytes of series and paths of a request: 256M, 1G"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.http.max_connections; }>(
                     "max_connections", 1, kMostKept)
                     .words("N", "simultaneous connections"));
  rows.push_back(
      ServeRows::number<[](auto& s) -> auto& { return s.service.sessions.max_sessions; }>(
          "max_sessions", 1, kMostKept)
          .words("N", "streaming sessions kept"));
  rows.push_back(
      ServeRows::number<[](auto& s) -> auto& { return s.service.shadow.rate; }>("shadow_rate", 0, 1)
          .words("X", "share of forecasts compared with reference mode", "0 with bf16 and int8"));
  rows.push_back(ServeRows::number<[](auto& s) -> auto& { return s.service.shadow.bound; }>(
                     "shadow_bound", 0, 1)
                     .words("X", "relative deviation that raises the alarm"));
  rows.push_back(
      ServeRows::toggle<[](auto& s) -> auto& { return s.service.auto_rollback; }>("auto_rollback")
          .words({}, "on an alarm, switch to reference mode until POST /v1/mode"));
  rows.push_back(ServeRows::text<[](auto& s) -> auto& { return s.service.log; }>("log")
                     .words("FILE", "log with a JSON line per request; - is stderr")
                     .or_else("none"));
  rows.push_back(
      ServeRows::toggle<[](auto& s) -> auto& { return s.service.trust_proxy; }>("trust_proxy")
          .words({}, "log the last address of X-Forwarded-For; only behind a proxy that sets it"));
  for (ServeField& row : rows) {
    row.doors = kFlag | kFile;
    row.section = "serve";
    row.variables = {settings::service_variable(row.name)};
  }
  return settings::table(std::move(rows));
}

}  // namespace

std::span<const ServeField> serve_fields() {
  static const std::vector<ServeField> fields = serve_rows();
  return fields;
}

}  // namespace toto::server
