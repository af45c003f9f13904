// Any bytes on a connection, through the whole connection class: every answer is a whole HTTP
// answer, and what reaches the handler is a request without line breaks in its parts.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "http_limits.h"
#include "server/http.h"

namespace {

using namespace toto::server;

constexpr std::size_t kMaxBody = 4096;

class Checker final : public HttpHandler {
 public:
  std::optional<std::size_t> find_route(const HttpRequest&) const override { return 0; }
  std::optional<HttpResponse> admit(const HttpRequest& request) override {
    const auto is_one_line = [](std::string_view text) {
      return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
    };
    require(is_one_line(request.method) && is_one_line(request.path) && is_one_line(request.query));
    for (const HttpHeader& item : request.headers) {
      require(!item.name.empty() && is_one_line(item.name) && is_one_line(item.value));
    }
    require(request.count("Content-Length") + request.count("Transfer-Encoding") <= 1);
    return std::nullopt;
  }
  void handle(HttpRequest request, ClientGone, Respond respond) override {
    require(request.body.size() <= kMaxBody);
    respond({.body = "{}"});
  }
  void answered(const HttpRequest&, const HttpResponse& response, bool) override {
    require(response.status == 200 || (response.status >= 400 && response.status < 500));
  }
};

// The answers to these bytes, until the server closes.
std::string exchange(int port, std::string_view bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // refused already
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(fd, SHUT_WR);
  std::string answers;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) {
    answers.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Checker checker;
  static const HttpServer server(
      {.port = 0, .io_threads = 1, .max_header_bytes = 2048, .max_body = kMaxBody}, checker);
  const std::string answers = exchange(server.port(), {reinterpret_cast<const char*>(data), size});
  for (std::string_view rest = answers; !rest.empty();) {
    if (rest.starts_with("HTTP/1.1 100 ")) {
      rest.remove_prefix(std::string_view("HTTP/1.1 100 Continue\r\n\r\n").size());
      continue;
    }
    require(rest.starts_with("HTTP/1.1 200 ") || rest.starts_with("HTTP/1.1 4"));
    const std::size_t head = rest.find("\r\n\r\n");
    require(head != rest.npos);
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t length = rest.substr(0, head).find(kLength);
    require(length != rest.npos);
    const std::size_t body = std::stoul(std::string(rest.substr(length + kLength.size(), 12)));
    const bool whole = rest.size() >= head + 4 + body;
    // The answer to HEAD announces the body that GET has.
    rest.remove_prefix(whole && !rest.substr(head + 4).starts_with("HTTP/") ? head + 4 + body
                                                                            : head + 4);
  }
  return 0;
}
