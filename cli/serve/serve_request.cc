#include "cli/serve/serve_request.h"

#include <arpa/inet.h>

#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/settings/settings_file.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

constexpr std::size_t kMaxKeyBytes = 4096;

// "256M": bytes, or thousands of 1024 of them.
std::size_t byte_count(const Choice& choice, std::size_t low, std::size_t high) {
  std::size_t number = 0;
  const char* end = choice.text.data() + choice.text.size();
  const auto [stop, error] = std::from_chars(choice.text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  const bool fits = error == std::errc() && shift >= 0 && number <= (high >> shift);
  if (!fits || (number << shift) < low) {
    fail(ErrorCode::invalid_argument, "{} is {}, expected {} to {} bytes, such as 64K, 256M or 1G",
         choice.origin, quoted(choice.text), low, high);
  }
  return number << shift;
}

std::string read_key(const ServeFlags& flags) {
  const auto key = find_choice(flags.api_key, "--api-key", {"TOTO_SERVE_API_KEY"});
  const auto file = find_choice(flags.api_key_file, "--api-key-file", {"TOTO_SERVE_API_KEY_FILE"});
  if (key && file) {
    fail(ErrorCode::invalid_argument, "{} and {} are both given, expected one of them", key->origin,
         file->origin);
  }
  if (!key && !file) return {};
  std::string text = key ? key->text : io::read_file(file->text, kMaxKeyBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  // The key itself never stands in a message.
  if (text.empty() || text.find_first_of(" \t\r\n") != text.npos) {
    fail(ErrorCode::invalid_argument, "{} holds no usable key, expected one word",
         key ? key->origin : file->text);
  }
  return text;
}

bool is_on(bool flag, const char* variable) {
  if (flag) return true;
  const auto choice = find_choice({}, {}, {variable});
  return choice && switch_value(*choice);
}

void read_limits(const ServeFlags& flags, ServeRequest& request) {
  server::RequestLimits& limits = request.service.limits;
  if (const auto body = find_choice(flags.max_body, "--max-body", {"TOTO_SERVE_MAX_BODY"})) {
    limits.max_body = byte_count(*body, 1024, std::size_t{16} << 30);
  }
  request.http.max_body = limits.max_body;
  constexpr int kMost = 1'000'000;
  if (const auto n = find_choice(flags.max_series, "--max-series", {"TOTO_SERVE_MAX_SERIES"})) {
    limits.max_series = static_cast<std::size_t>(whole_number(*n, 1, kMost));
  }
  if (const auto n = find_choice(flags.max_horizon, "--max-horizon", {"TOTO_SERVE_MAX_HORIZON"})) {
    limits.max_horizon = whole_number(*n, 1, kMaxHorizon);
  }
  if (const auto n = find_choice(flags.max_samples, "--max-samples", {"TOTO_SERVE_MAX_SAMPLES"})) {
    limits.max_samples = whole_number(*n, 1, kMaxSamples);
  }
  if (const auto memory =
          find_choice(flags.max_memory, "--max-memory", {"TOTO_SERVE_MAX_MEMORY"})) {
    limits.max_memory = byte_count(*memory, 1024, std::size_t{1} << 40);
  }
  // One request that takes all it may always fits: its body twice, compressed and not.
  request.http.max_bodies = std::max(
      request.http.max_bodies, 2 * limits.max_body + limits.max_memory + limits.max_answer_bytes);
  if (const auto n =
          find_choice(flags.max_connections, "--max-connections", {"TOTO_SERVE_MAX_CONNECTIONS"})) {
    request.http.max_connections = static_cast<std::size_t>(whole_number(*n, 1, 100'000));
  }
  if (const auto n =
          find_choice(flags.max_sessions, "--max-sessions", {"TOTO_SERVE_MAX_SESSIONS"})) {
    request.service.sessions.max_sessions = static_cast<std::size_t>(whole_number(*n, 1, 100'000));
  }
  if (const auto n = find_choice(flags.queue, "--queue", {"TOTO_SERVE_QUEUE"})) {
    request.service.scheduler.max_queued = static_cast<std::size_t>(whole_number(*n, 1, kMost));
  }
  if (const auto n = find_choice(flags.deadline, "--deadline", {"TOTO_SERVE_DEADLINE"})) {
    request.service.deadline = std::chrono::seconds(whole_number(*n, 1, 86'400));
  }
}

void read_shadow(const ServeFlags& flags, ServeRequest& request) {
  server::ShadowOptions& shadow = request.service.shadow;
  // Weights stored in fewer bits differ from the reference on purpose.
  const bool exact = request.settings.engine.dtype == DType::f32;
  shadow.rate = exact ? 0.01 : 0;
  const auto rate = find_choice(flags.shadow_rate, "--shadow-rate", {"TOTO_SERVE_SHADOW_RATE"});
  const auto bound = find_choice(flags.shadow_bound, "--shadow-bound", {"TOTO_SERVE_SHADOW_BOUND"});
  if (rate) shadow.rate = decimal_number(*rate, 0, 1);
  if (bound) shadow.bound = decimal_number(*bound, 0, 1);
  if (rate && shadow.rate > 0 && !exact && !bound) {
    fail(ErrorCode::invalid_argument,
         "{} is {} with dtype {}, which differs from reference mode on purpose; expected a "
         "--shadow-bound that allows for it",
         rate->origin, rate->text, name_of(request.settings.engine.dtype));
  }
  request.service.auto_rollback = is_on(flags.auto_rollback, "TOTO_SERVE_AUTO_ROLLBACK");
  if (request.service.auto_rollback && shadow.rate == 0) {
    fail(ErrorCode::invalid_argument,
         "--auto-rollback needs forecasts to be compared, expected a --shadow-rate above 0");
  }
}

// The common options have variables of their own; those of the service win over them.
class ServiceVariables {
 public:
  explicit ServiceVariables(CommonFlags& flags) {
    take(flags.model, "--model", "TOTO_SERVE_MODEL");
    take(flags.mode, "--mode", "TOTO_SERVE_MODE");
    take(flags.dtype, "--dtype", "TOTO_SERVE_DTYPE");
    take(flags.threads, "--threads", "TOTO_SERVE_THREADS");
    take(flags.isa, "--isa", "TOTO_SERVE_ISA");
    take(flags.seed, "--seed", "TOTO_SERVE_SEED");
    take(flags.plan_cache_size, "--plan-cache-size", "TOTO_SERVE_PLAN_CACHE_SIZE");
    take(flags.cache_dir, "--cache-dir", "TOTO_SERVE_CACHE_DIR");
    take(flags.no_cache, "TOTO_SERVE_NO_CACHE");
    take(flags.no_kv_cache, "TOTO_SERVE_NO_KV_CACHE");
  }
  // Throws the error as one about the variable, if it is about a flag that came from one.
  void explain(const Error& error) const {
    const std::string_view message = error.what();
    for (const auto& [flag, variable] : taken_) {
      if (!message.starts_with(flag)) continue;
      const std::string_view rest = message.substr(flag.size());
      if (rest.starts_with(' ') || rest.starts_with(':')) {
        throw Error(error.code(), fmt::format("{}{}", variable, rest));
      }
    }
  }

 private:
  void take(std::optional<std::string>& value, std::string_view flag, const char* variable) {
    if (value) return;
    if (const auto choice = find_variable({variable})) {
      value = choice->text;
      taken_.emplace_back(flag, variable);
    }
  }
  static void take(bool& value, const char* variable) {
    if (const auto choice = find_variable({variable}); choice && !value) {
      value = switch_value(*choice);
    }
  }

  std::vector<std::pair<std::string_view, std::string_view>> taken_;  // flag, variable
};

Settings read_settings(CommonFlags& flags) {
  if (const auto file = find_variable({"TOTO_SERVE_CONFIG"})) propose_settings_file(file->text);
  const ServiceVariables variables(flags);
  try {
    Settings settings = resolve_settings(flags);
    check_available(settings);
    return settings;
  } catch (const Error& error) {
    variables.explain(error);
    throw;
  }
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

bool is_address(const std::string& host) {
  in6_addr room{};
  return host == "localhost" || ::inet_pton(AF_INET, host.c_str(), &room) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

}  // namespace

void add_serve_options(Command& command, ServeFlags& flags) {
  command
      .option("--host", "H", flags.host,
              "address to listen on; other than loopback only with a key, or behind a proxy "
              "(default 127.0.0.1)")
      .option("--port", "N", flags.port, "port to listen on; 0: any free one (default 8080)")
      .option("--api-key", "K", flags.api_key,
              "what clients must send as Authorization: Bearer K (default none); a file keeps it "
              "off the list of processes")
      .option("--api-key-file", "FILE", flags.api_key_file, "the same, from a file (default none)")
      .option("--tls-cert", "FILE", flags.tls_cert,
              "certificate chain, PEM; needs --tls-key (default none)")
      .option("--tls-key", "FILE", flags.tls_key, "its private key, PEM (default none)")
      .option("--cors", "ORIGIN", flags.cors, "origin whose pages may ask (default none)")
      .option("--queue", "N", flags.queue, "requests that may wait (default 256)")
      .option("--deadline", "S", flags.deadline, "seconds a request may take (default 60)")
      .option("--max-body", "SIZE", flags.max_body,
              "bytes of a request, also decompressed: 64K, 256M, 1G (default 256M)")
      .option("--max-series", "N", flags.max_series, "series of a request (default 100000)")
      .option("--max-horizon", "N", flags.max_horizon,
              "steps a request may ask for (default 100000)")
      .option("--max-samples", "N", flags.max_samples,
              "paths a request may ask for (default 1000000)")
      .option("--max-memory", "SIZE", flags.max_memory,
              "bytes of series and paths a request may take: 256M, 1G (default 256M)")
      .option("--max-connections", "N", flags.max_connections,
              "connections at a time (default 1024)")
      .option("--max-sessions", "N", flags.max_sessions, "streaming sessions kept (default 64)")
      .option("--shadow-rate", "X", flags.shadow_rate,
              "share of forecasts computed again in reference mode and compared (default 0.01; 0 "
              "with bf16 and int8)")
      .option("--shadow-bound", "X", flags.shadow_bound,
              "relative deviation that raises the alarm (default 1e-5)")
      .flag("--auto-rollback", flags.auto_rollback,
            "then also switch to reference mode, until POST /v1/mode (default off)")
      .option("--log", "FILE", flags.log, "JSON line for each request; - is stderr (default none)")
      .flag("--trust-proxy", flags.trust_proxy,
            "log the last address of X-Forwarded-For; only behind a proxy that sets it (default "
            "off)");
  add_common_options(command, flags.common);
  command.note(
      "Every flag has a variable: TOTO_SERVE_PORT, TOTO_SERVE_API_KEY_FILE, TOTO_SERVE_MODEL, ...; "
      "those of the service\nalso a line in toto.conf: serve-port = 8080. `toto config show` "
      "prints "
      "them all.\n"
      "SIGTERM and Ctrl-C: no new work, accepted work is answered, exit 0 within 10 s. SIGHUP: the "
      "log is opened again.");
}

ServeRequest make_serve_request(ServeFlags flags) {
  ServeRequest request;
  request.settings = read_settings(flags.common);
  server::HttpOptions& http = request.http;
  if (const auto host = find_choice(flags.host, "--host", {"TOTO_SERVE_HOST"})) {
    if (!is_address(host->text)) {
      fail(ErrorCode::invalid_argument,
           "{} is {}, expected an address such as 127.0.0.1 or ::", host->origin,
           quoted(host->text));
    }
    http.host = host->text;
  }
  if (const auto port = find_choice(flags.port, "--port", {"TOTO_SERVE_PORT"})) {
    http.port = whole_number(*port, 0, 65'535);
  }
  const auto cert = find_choice(flags.tls_cert, "--tls-cert", {"TOTO_SERVE_TLS_CERT"});
  const auto key = find_choice(flags.tls_key, "--tls-key", {"TOTO_SERVE_TLS_KEY"});
  if (cert.has_value() != key.has_value()) {
    fail(ErrorCode::invalid_argument, "{} is given alone, expected --tls-cert and --tls-key",
         cert ? cert->origin : key->origin);
  }
  if (cert) {
    http.tls_cert = cert->text;
    http.tls_key = key->text;
  }
  request.service.access.api_key = read_key(flags);
  request.service.access.loopback = server::is_loopback(http.host);
  if (const auto cors = find_choice(flags.cors, "--cors", {"TOTO_SERVE_CORS"})) {
    if (!is_origin(cors->text)) {
      fail(ErrorCode::invalid_argument,
           "{} is {}, expected an origin as browsers send it, such as https://example.org: scheme "
           "and host in lower case, no path",
           cors->origin, quoted(cors->text));
    }
    request.service.access.cors = cors->text;
  }
  if (const auto log = find_choice(flags.log, "--log", {"TOTO_SERVE_LOG"})) {
    request.service.log = log->text;
  }
  request.service.trust_proxy = is_on(flags.trust_proxy, "TOTO_SERVE_TRUST_PROXY");
  read_limits(flags, request);
  read_shadow(flags, request);
  request.service.limits.seed = request.settings.seed;
  request.service.mode = request.settings.engine.mode;
  return request;
}

}  // namespace toto::cli
