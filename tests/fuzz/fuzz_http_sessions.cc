// Session operations as sequences, on a real service: two bytes are one operation and its argument.
// Every answer has an expected status, the length a session reports is what was appended to it, and
// refused appends take no room.
#include <fmt/format.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "http_limits.h"
#include "io/json.h"
#include "server/service.h"
#include "tests/toto1_models.h"

namespace {

using namespace toto;
using namespace toto::server;

constexpr std::size_t kMaxSessions = 8;
constexpr std::size_t kMaxPoints = 4000;  // of all sessions together

// A service with a tiny model; removed at the end of the process.
struct Harness {
  Harness() {
    std::string name = (std::filesystem::temp_directory_path() / "toto-fuzz-XXXXXX").string();
    server::require(mkdtemp(name.data()) != nullptr);
    folder = name;
    Toto1Config config;
    config.patch_size = 8;
    config.embed_dim = 16;
    config.num_layers = 1;
    config.num_heads = 2;
    config.mlp_hidden_dim = 16;
    config.num_components = 2;
    make_model(config, 1, io::TensorType::f32, folder);
    std::promise<void> loaded;
    ServiceOptions options;
    options.model = "fuzz";
    options.load = [this](Mode mode) { return Engine::load(folder, {.mode = mode, .threads = 1}); };
    options.on_loaded = [&](const std::optional<Error>&) { loaded.set_value(); };
    options.sessions.max_sessions = kMaxSessions;
    options.sessions.max_histories = kMaxPoints * sizeof(float);
    service = std::make_unique<Service>(std::move(options));
    loaded.get_future().get();
  }
  ~Harness() {
    service.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  HttpResponse ask(std::string_view method, const std::string& path, std::string body) const {
    HttpRequest request{.method = std::string(method), .path = path, .body = std::move(body)};
    request.received = Clock::now();
    request.route = service->find_route(request);
    server::require(request.route.has_value());
    std::promise<HttpResponse> answer;
    service->handle(std::move(request), std::make_shared<std::atomic<bool>>(false),
                    [&](HttpResponse response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }

  std::string folder;
  std::unique_ptr<Service> service;
};

struct Open {
  std::string id = {};
  std::size_t variates = 1, length = 0;
};

std::string lists(std::size_t variates, std::size_t count) {
  std::string text;
  for (std::size_t v = 0; v < variates; ++v) {
    text += v == 0 ? "[" : ",[";
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(i % 7 + v);
    text += "]";
  }
  return text;
}

void check_length(const HttpResponse& response, const Open& session) {
  const io::Json json = io::parse_json(response.body, "the answer");
  const io::Json* length = json.find("length");
  server::require(length != nullptr &&
                  length->integer == static_cast<std::int64_t>(session.length));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Harness harness;
  std::vector<Open> open;
  const auto total = [&] {
    std::size_t points = 0;
    for (const Open& session : open) points += session.variates * session.length;
    return points;
  };
  for (std::size_t i = 0; i + 1 < std::min<std::size_t>(size, 128); i += 2) {
    const std::uint8_t argument = data[i + 1];
    const std::size_t count = argument % 64;
    if (data[i] % 4 == 0) {
      Open session{.variates = (argument & 0x40) != 0 ? 2U : 1U, .length = count};
      std::string series;
      for (std::size_t v = 0; v < session.variates; ++v) {
        series += fmt::format("{}{{\"values\": {}}}", v == 0 ? "" : ",", lists(1, count));
      }
      const HttpResponse answer =
          harness.ask("POST", "/v1/sessions", "{\"series\": [" + series + "]}");
      const bool fits =
          open.size() < kMaxSessions && total() + session.variates * count <= kMaxPoints;
      require(answer.status == (fits ? 200 : 429) || (answer.status == 400 && count == 0));
      if (answer.status != 200) continue;
      session.id = io::parse_json(answer.body, "the answer").find("session")->string;
      check_length(answer, session);
      open.push_back(std::move(session));
      continue;
    }
    if (open.empty()) {
      require(harness.ask("DELETE", "/v1/sessions/none", {}).status == 404);
      continue;
    }
    Open& session = open[argument % open.size()];
    const std::string path = "/v1/sessions/" + session.id;
    if (data[i] % 4 == 1) {
      const bool wrong = (argument & 0x80) != 0;
      const std::size_t points = count * 8;
      const HttpResponse answer =
          harness.ask("POST", path + "/append",
                      fmt::format("{{\"values\": [{}]{}}}", lists(session.variates, points),
                                  wrong ? ", \"bogus\": 1" : ""));
      const bool fits = total() + session.variates * points <= kMaxPoints;
      if (wrong) {
        require(answer.status == 400);
        continue;
      }
      require(answer.status == (fits ? 200 : 429));
      if (answer.status != 200) continue;
      session.length += points;
      check_length(answer, session);
    } else if (data[i] % 4 == 2) {
      const HttpResponse answer =
          harness.ask("POST", path + "/forecast",
                      fmt::format("{{\"horizon\": {}}}", static_cast<int>(count) - 1));
      require(answer.status == 200 || answer.status == 400);
      require(answer.status == 400 || count >= 2);
    } else {
      require(harness.ask("DELETE", path, {}).status == 200);
      require(harness.ask("DELETE", path, {}).status == 404);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(argument % open.size()));
    }
  }
  for (const Open& session : open) {
    require(harness.ask("DELETE", "/v1/sessions/" + session.id, {}).status == 200);
  }
  return 0;
}
