// A separate server for every test, on a free port of loopback, and a client on raw sockets that
// can misbehave.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/text.h"
#include "eventually.h"
#include "io/csv.h"
#include "io/json.h"
#include "server/http.h"
#include "server/service.h"
#include "test_model.h"

namespace toto::server {

using io::Json;
using std::chrono::milliseconds;
using testing::eventually;
using testing::kPatience;

struct Reply {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string error() const {
    const Json json = io::parse_json(body, "the reply");
    const Json* sentence = json.find("error");
    return sentence == nullptr ? "no error: " + body : sentence->string;
  }
};

class Client {
 public:
  // without_waiting: bytes that cannot be sent immediately are dropped, and the receive buffer is
  // small.
  enum class Sending { all, without_waiting };
  explicit Client(int port, Sending sending = Sending::all)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)),
        flags_(MSG_NOSIGNAL | (sending == Sending::all ? 0 : MSG_DONTWAIT)) {
    const int little = 4096;
    if (sending == Sending::without_waiting) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    }
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0;
    const int yes = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  ~Client() { close(); }
  Client(Client&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        flags_(other.flags_),
        connected_(other.connected_),
        pending_(std::move(other.pending_)) {}
  Client& operator=(Client&&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), flags_);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // The next answer of this connection.
  Reply receive(milliseconds patience = kPatience) {
    const auto until = Clock::now() + patience;
    std::size_t end = pending_.npos;
    while ((end = pending_.find("\r\n\r\n")) == pending_.npos) {
      if (!more(until)) return {};
    }
    Reply reply;
    std::string_view head = std::string_view(pending_).substr(0, end);
    reply.status = std::atoi(std::string(head.substr(head.find(' ') + 1, 3)).c_str());
    for (std::size_t at = head.find("\r\n"); at != head.npos;) {
      const std::size_t next = head.find("\r\n", at + 2);
      const std::string_view line = head.substr(at + 2, next == head.npos ? next : next - at - 2);
      const std::size_t colon = line.find(':');
      reply.headers[lower_case(line.substr(0, colon))] =
          std::string(trimmed(line.substr(colon + 1)));
      at = next;
    }
    if (reply.status == 100) {
      pending_.erase(0, end + 4);
      return receive(patience);
    }
    const std::size_t size = std::stoul(reply.headers["content-length"]);
    while (pending_.size() < end + 4 + size) {
      if (!more(until)) return {};
    }
    reply.body = pending_.substr(end + 4, size);
    pending_.erase(0, end + 4 + size);
    return reply;
  }
  bool has_partial_answer() const { return !pending_.empty(); }
  const std::string& unread() const { return pending_; }  // of what has arrived
  // Whether something has arrived within this time; it is not fetched.
  bool receives(milliseconds patience = kPatience) const {
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, static_cast<int>(patience.count())) > 0;
  }
  // Whether the server has closed its side within this time.
  bool closed(milliseconds patience = kPatience) {
    const auto until = Clock::now() + patience;
    while (Clock::now() < until) {
      if (!more(until)) return at_end_;
    }
    return false;
  }

 private:
  bool more(Clock::time_point until) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
    char buffer[65536];
    const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
    at_end_ = got <= 0;
    if (got > 0) pending_.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  int fd_;
  int flags_;
  bool connected_ = false;
  bool at_end_ = false;
  std::string pending_;
};

inline std::string request_text(std::string_view method, std::string_view path,
                                std::string_view body = {}, std::string_view headers = {}) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}", method, path, headers);
  if (!body.empty() || method == "POST") {
    text += fmt::format("Content-Length: {}\r\n", body.size());
  }
  text += "\r\n";
  return text += body;
}

// A request that is answered immediately.
inline const std::string kForecast =
    R"({"series": [{"values": [1, 2, 3, 4, 5, 6, 7, 8, 9]}], "horizon": 4})";

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    service_options_.model = "small";
    service_options_.load = [](Mode mode) {
      EngineOptions options{.mode = mode, .threads = 1};
      return Engine::load(model(), options);
    };
    http_options_.port = 0;
  }
  // Before the members of a derived fixture are destroyed: the service's threads may use them.
  void TearDown() override { stop(); }

  static const std::string& model() {
    static const testing::TemporaryFolder folder;
    static const std::string path = testing::made_model(folder);
    return path;
  }

  void start(bool wait_until_loaded = true) {
    auto loaded = std::make_shared<std::promise<std::optional<Error>>>();
    auto once = std::make_shared<std::once_flag>();
    service_options_.on_loaded = [loaded, once](std::optional<Error> error) {
      std::call_once(*once, [&] { loaded->set_value(std::move(error)); });
    };
    service_ = std::make_unique<Service>(service_options_);
    http_ = std::make_unique<HttpServer>(http_options_, *service_);
    service_->watch(*http_);
    port_ = http_->port();
    if (wait_until_loaded) {
      ASSERT_FALSE(loaded->get_future().get().has_value());
      // Loading is counted as queued until a moment after it is reported.
      ASSERT_TRUE(eventually([this] { return service_->scheduler().depth() == 0; }));
    }
  }
  void stop() {
    if (!http_) return;
    http_->drain();
    http_->wait(milliseconds(5000));
    service_->cancel_all();
    service_->stop();
    http_.reset();
    service_.reset();
  }

  Client connect() const { return Client(port_); }
  Reply ask(std::string_view method, std::string_view path, std::string_view body = {},
            std::string_view headers = {}) const {
    Client client(port_);
    client.send(request_text(method, path, body, headers));
    return client.receive();
  }
  Reply get(std::string_view path, std::string_view headers = {}) const {
    return ask("GET", path, {}, headers);
  }
  Reply post(std::string_view path, std::string_view body, std::string_view headers = {}) const {
    return ask("POST", path, body, headers);
  }
  // The raw bytes of a request are refused with this status.
  void expect_refused(int status, const std::string& bytes, std::string_view fragment = {}) const {
    Client client(port_);
    client.send(bytes);
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, status) << bytes.substr(0, 200);
    if (reply.status == 0) return;
    EXPECT_NE(reply.error().find(fragment), std::string::npos) << reply.body;
  }

  // Keeps a lane busy for as long as it lives.
  class BusyEngine {
   public:
    explicit BusyEngine(Scheduler& scheduler, LaneKind lane = LaneKind::fast) {
      scheduler.submit(
          [go = go_.get_future().share()](const ActiveEngine&) -> std::int64_t {
            go.wait();
            return 0;
          },
          lane, {}, Clock::time_point::max(), [](std::optional<Error>, const ForecastAnswer&) {});
    }
    ~BusyEngine() { go_.set_value(); }
    BusyEngine(const BusyEngine&) = delete;
    BusyEngine& operator=(const BusyEngine&) = delete;

   private:
    std::promise<void> go_;
  };

  // Hands a request to the service as if it had arrived, on this thread. `respond` runs on the
  // thread that answers, `gone` says that the client has left.
  void hand_over(std::string_view path, std::string body, Respond respond,
                 const ClientGone& gone = std::make_shared<std::atomic<bool>>(false),
                 std::vector<HttpHeader> headers = {},
                 Clock::time_point received = Clock::now()) const {
    HttpRequest request{.method = "POST",
                        .path = std::string(path),
                        .headers = std::move(headers),
                        .body = std::move(body),
                        .received = received};
    request.route = service_->find_route(request);
    service_->handle(std::move(request), gone, std::move(respond));
  }

  // The engine's own answer, and what a server must say to the bit.
  Forecast expected(const Series& series, const ForecastOptions& options) {
    if (!engine_) engine_.emplace(Engine::load(model(), {.threads = 1}));
    return engine_->forecast(series, options);
  }
  static std::string values_text(const std::vector<float>& values) {
    std::string text = "[";
    for (const float value : values) {
      text +=
          (text.size() > 1 ? "," : "") + (std::isnan(value) ? "null" : fmt::format("{}", value));
    }
    return text + "]";
  }
  static std::vector<float> floats(const Json& json) {
    std::vector<float> values;
    for (const Json& item : json.array) {
      values.push_back(item.kind == Json::Kind::null ? NAN : static_cast<float>(item.real));
    }
    return values;
  }
  static Json parsed(const Reply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    return io::parse_json(reply.body, "the reply");
  }
  static const Json& at(const Json& json, std::string_view key) {
    static const Json kNothing;
    const Json* found = json.find(key);
    EXPECT_NE(found, nullptr) << "no \"" << key << "\"";
    return found == nullptr ? kNothing : *found;
  }

  ServiceOptions service_options_;
  HttpOptions http_options_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> http_;
  int port_ = 0;

 private:
  std::optional<Engine> engine_;
};

}  // namespace toto::server
