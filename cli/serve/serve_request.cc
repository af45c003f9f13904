#include "cli/serve/serve_request.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "cli/settings/settings_file.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

std::optional<Choice> find_serve_choice(const Flags& flags, std::string_view name) {
  return find_choice(flags, *settings::find(server::serve_fields(), name));
}

// The key of --api-key or of the file; it never appears in a message.
void read_key(const Flags& flags, ServeRequest& request) {
  constexpr std::size_t kMaxKeyBytes = 4096;
  const auto key = find_serve_choice(flags, "api_key");
  const auto file = find_serve_choice(flags, "api_key_file");
  if (key && file) {
    fail(ErrorCode::invalid_argument, "{} and {} are both given, expected one of them", key->origin,
         file->origin);
  }
  if (!key && !file) return;
  std::string text = key ? key->text : io::read_file(file->text, kMaxKeyBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  // Of characters that a header can hold: a zero byte would end the key early in other programs.
  const auto is_usable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (text.empty() || !std::ranges::all_of(text, is_usable)) {
    fail(ErrorCode::invalid_argument, "{} holds no usable key, expected one word of ASCII",
         key ? key->origin : file->text);
  }
  request.service.access.api_key = text;
}

void check_tls(const Flags& flags) {
  const auto cert = find_serve_choice(flags, "tls_cert");
  const auto key = find_serve_choice(flags, "tls_key");
  if (cert.has_value() == key.has_value()) return;
  fail(ErrorCode::invalid_argument, "{} is given alone, expected --tls-cert and --tls-key",
       cert ? cert->origin : key->origin);
}

// Weights stored in fewer bits differ from the reference on purpose: not compared by default.
void check_shadow(const Flags& flags, ServeRequest& request) {
  server::ShadowOptions& shadow = request.service.shadow;
  const DType dtype = request.settings.engine.dtype;
  const auto rate = find_serve_choice(flags, "shadow_rate");
  if (dtype != DType::f32 && !rate) shadow.rate = 0;
  if (dtype != DType::f32 && shadow.rate > 0 && !find_serve_choice(flags, "shadow_bound")) {
    fail(ErrorCode::invalid_argument,
         "{} is {} with dtype {}, which differs from reference mode on purpose; expected a "
         "--shadow-bound that allows for it",
         rate->origin, rate->text, name_of(dtype));
  }
  if (request.service.auto_rollback && shadow.rate == 0) {
    fail(ErrorCode::invalid_argument,
         "--auto-rollback needs forecasts to be compared, expected a --shadow-rate above 0");
  }
}

}  // namespace

void add_serve_options(Command& command, Flags& flags) {
  flags.add_all(command, server::serve_fields());
  add_common_options(command, flags);
  command.note(
      "Every flag has a variable: TOTO_SERVE_PORT, TOTO_SERVE_API_KEY_FILE, TOTO_SERVE_MODEL, ...; "
      "those of the service\nalso have a line in toto.conf: serve-port = 9000. `toto config show` "
      "lists them all.\n"
      "SIGTERM and Ctrl-C: no new work, accepted work is answered, exit 0 within 10 s. SIGHUP: the "
      "log is opened again.");
}

ServeRequest make_serve_request(const Flags& flags) {
  if (const auto file = find_variable("TOTO_SERVE_CONFIG")) propose_settings_file(file->text);
  ServeRequest request;
  request.settings = resolve_available(flags, {.service = true});
  read_settings(flags, server::serve_fields(), static_cast<server::ServeSettings&>(request));
  check_tls(flags);
  read_key(flags, request);
  check_shadow(flags, request);
  server::HttpOptions& http = request.http;
  server::RequestLimits& limits = request.service.limits;
  request.service.access.loopback = server::is_loopback(http.host);
  http.max_body = limits.max_body;
  // The largest request always fits: its body twice, compressed and not.
  http.max_bodies =
      std::max(http.max_bodies, 2 * limits.max_body + limits.max_memory + limits.max_answer_bytes);
  limits.seed = request.settings.seed;
  request.service.mode = request.settings.engine.mode;
  return request;
}

}  // namespace toto::cli
