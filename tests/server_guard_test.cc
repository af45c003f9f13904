// What one request may cost the others: the bytes it hides behind, the memory, places and time it
// may take, and what the log says of it.
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "gzipped.h"
#include "server/access.h"
#include "server/access_log.h"
#include "server/protocol_nixtla.h"
#include "server/protocol_v1.h"
#include "server/sessions.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

const std::string kForecast =
    R"({"series": [{"values": [1, 2, 3, 4, 5, 6, 7, 8, 9]}], "horizon": 4})";

class Guard : public ServerTest {
 protected:
  bool has_sessions(int count) const {
    return service_->metrics().find(fmt::format("\ntoto_sessions {}\n", count)) !=
           std::string::npos;
  }
};

// What a proxy takes for the body of one request must not be read as another.
TEST_F(Guard, OnlyChunkedIsATransferCoding) {
  start();
  const std::string inner = "0\r\n\r\n" + request_text("GET", "/v1/status");
  for (const char* coding :
       {"xchunked", "chunked, identity", "identity", "gzip, chunked", "chunked;q=1", "\"chunked\"",
        "chunked\r\nTransfer-Encoding: identity", "identity\r\nTransfer-Encoding: chunked"}) {
    Client client = connect();
    client.send(fmt::format(
        "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: {}\r\n\r\n{}", coding,
        inner));
    EXPECT_EQ(client.receive().status, 400) << coding;
    EXPECT_EQ(client.receive(milliseconds(2000)).status, 0) << "a second answer: " << coding;
    EXPECT_TRUE(client.closed(milliseconds(5000))) << coding;
  }
  for (const auto& [version, status] : {std::pair("1.0", 400), std::pair("1.1", 200)}) {
    Client client = connect();
    client.send(
        fmt::format("POST /v1/forecast HTTP/{}\r\nHost: localhost\r\n"
                    "Transfer-Encoding: CHUNKED\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                    version, kForecast.size(), kForecast));
    EXPECT_EQ(client.receive().status, status) << version;
  }
}

// A small body can ask for much: variates are filled up to the longest, known series stand beside
// every target, every window has its history, and paths are as many as somebody likes.
TEST(GuardMemory, IsAddedUpBeforeItIsTaken) {
  const Limits limits{.max_memory = std::size_t{64} << 20};
  const auto expect_too_much = [](const std::function<void()>& plan) {
    ErrorCode code{};
    const std::string sentence = testing::error_of(plan, &code);
    EXPECT_EQ(code, ErrorCode::invalid_argument);
    EXPECT_NE(sentence.find("--max-memory"), std::string::npos) << sentence;
  };
  const auto series = [](std::size_t length, const char* more = "") {
    std::string text = "{\"values\":[0";
    for (std::size_t i = 1; i < length; ++i) text += ",1";
    return text + "]" + more + "}";
  };
  std::string wide = series(20'000), beside = series(20'000, ",\"future\":[1]");
  for (int i = 0; i < 1500; ++i) {
    wide += ",{\"values\":[1]}";
    beside += ",{\"values\":[1]}";
  }
  const auto body = [](const std::string& text) { return io::parse_json(text, "the request"); };
  expect_too_much([&] {
    plan_v1(body(R"({"multivariate": true, "horizon": 1, "series": [)" + wide + "]}"), limits);
  });
  expect_too_much([&] { plan_v1(body(R"({"horizon": 1, "series": [)" + beside + "]}"), limits); });
  expect_too_much([&] { read_session(body("{\"series\": [" + wide + "]}"), limits); });
  expect_too_much([&] {
    plan_v1(body(R"({"series": [{"values": [1, 2]}], "horizon": 1000, "samples": 100000})"),
            limits);
  });
  std::string y = "1";
  for (int i = 1; i < 20'000; ++i) y += ",1";
  for (const char* more : {R"("h": 1, "n_windows": 10000)", R"("full_history": true)"}) {
    Limits small = limits;
    small.max_memory = std::size_t{8} << 20;
    expect_too_much([&] {
      plan_nixtla_cross_validation(
          body(fmt::format(R"({{"series": {{"y": [{}], "sizes": [20000]}}, {}}})", y, more)),
          small);
    });
  }
  // Paths are drawn where the model's first patch ends, wherever that is.
  Limits short_patch{.max_memory = 20'000, .patch_size = 16};
  const char* beyond = R"({"series": [{"values": [1, 2]}], "horizon": 40})";
  expect_too_much([&] { plan_v1(body(beyond), short_patch); });
  short_patch.patch_size = 40;
  EXPECT_EQ(plan_v1(body(beyond), short_patch).options.horizon, 40);
  // What fits is planned.
  const Plan plan = plan_v1(body("{\"series\": [" + series(20'000) + "]}"), limits);
  EXPECT_EQ(plan.series.at(0).length(), 20'000u);
}

TEST_F(Guard, DecompressedBodiesCountLikeOthers) {
  http_options_.max_bodies = std::size_t{1} << 20;
  start();
  const std::string large = gzipped(std::string(2 << 20, ' ')),
                    small = gzipped(std::string(512 << 10, ' '));
  ASSERT_LT(large.size(), http_options_.max_bodies / 10);
  for (int i = 0; i < 3; ++i) {
    const Reply refused = post("/v1/forecast", large, "Content-Encoding: gzip\r\n");
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.error().find("large requests"), std::string::npos);
    // What it had is free again: this one is read, and is no JSON.
    EXPECT_EQ(post("/v1/forecast", small, "Content-Encoding: gzip\r\n").status, 400);
  }
}

// A reader that stalls: what is written next must fit, or not be written.
TEST(GuardLog, NeverWaitsForAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  AccessLog log("-");
  const int capacity = ::fcntl(ends[1], F_SETPIPE_SZ, 8192);
  const std::string page(static_cast<std::size_t>(capacity) - 4096, 'x');
  ASSERT_EQ(::write(ends[1], page.data(), page.size()), static_cast<ssize_t>(page.size()));
  auto written = std::async(std::launch::async, [&] {
    log.add({.path = std::string(1024, '\x01')}, "other", {}, true);
    log.add({.method = std::string(9000, 'A'), .path = "/"}, "other", {}, true);
  });
  const bool in_time = written.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  std::string text(65536, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  EXPECT_TRUE(in_time);
  // One that waits is let go.
  while (!in_time && written.wait_for(milliseconds(10)) != std::future_status::ready) {
    EXPECT_GT(::read(ends[0], text.data(), 1), 0);
  }
  written.wait();
  ::dup2(before, STDERR_FILENO);
  for (const int fd : {ends[0], ends[1], before}) ::close(fd);
  EXPECT_EQ(log.num_lost(), 1) << "the path that becomes 6144 bytes of text";
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  EXPECT_NE(text.find("\"AAAA"), std::string::npos) << "the method is cut, the line is there";
  EXPECT_EQ(text.find(std::string(100, 'A')), std::string::npos);
}

TEST_F(Guard, SessionForecastsHaveADeadline) {
  service_options_.deadline = milliseconds(1000);
  start();
  const Json opened = parsed(post("/v1/sessions", R"({"series": {"values": [1, 2, 3]}})"));
  const std::string path = "/v1/sessions/" + at(opened, "session").string;
  for (const auto& [verb, body] :
       {std::pair("/forecast", R"({"horizon": 50000, "samples": 100})"),
        std::pair("/append", R"({"values": [4], "horizon": 50000, "samples": 100})")}) {
    const Reply reply = post(path + verb, body);
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.error().find("in time"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(at(parsed(post(path + "/append", R"({"values": []})")), "length").integer, 4);
}

TEST_F(Guard, WhoWaitsIsToldInTimeWhateverIsComputed) {
  service_options_.deadline = milliseconds(500);
  start();
  const BusyEngine busy(service_->scheduler());
  for (const char* route : {"/v1/forecast", "/v1/sessions"}) {
    Client client = connect();
    client.send(request_text(
        "POST", route,
        route == std::string("/v1/forecast") ? kForecast : R"({"series": {"values": [1, 2]}})"));
    const Reply reply = client.receive(milliseconds(20'000));
    EXPECT_EQ(reply.status, 503) << route;
    EXPECT_NE(reply.body.find("in time"), std::string::npos) << reply.body;
  }
  EXPECT_TRUE(soon([&] { return has_sessions(0); }));
}

TEST_F(Guard, SessionsThatNeverOpenedTakeNoPlace) {
  service_options_.scheduler.max_queued = 2;
  start();
  const std::string open = request_text("POST", "/v1/sessions", R"({"series": {"values": [1]}})");
  {
    const BusyEngine busy(service_->scheduler());
    {
      // One that leaves before its turn.
      const Client leaves = connect();
      leaves.send(open);
      ASSERT_TRUE(soon([&] { return service_->scheduler().depth() == 2; }));
      EXPECT_TRUE(has_sessions(1));
      Client refused = connect();
      refused.send(open);
      EXPECT_EQ(refused.receive().status, 429);
      EXPECT_TRUE(has_sessions(1));
    }
    std::this_thread::sleep_for(milliseconds(500));  // it is noticed
  }
  EXPECT_TRUE(soon([&] { return has_sessions(0); }));
  parsed(post("/v1/sessions", R"({"series": {"values": [1, 2]}})"));
  EXPECT_TRUE(has_sessions(1));
}

std::string points(int count) {
  std::string text = "{\"values\": [1";
  for (int i = 1; i < count; ++i) text += fmt::format(",{}", i % 7);
  return text + "]}";
}

// As much as a request may take, a session may hold: points that are too many at once are refused,
// and over time the oldest go.
TEST_F(Guard, SessionsHoldNoMoreThanARequest) {
  service_options_.limits.max_memory = 8192;  // 2048 points
  start();
  const Json opened = parsed(post("/v1/sessions", R"({"series": {"values": [1, 2]}})"));
  const std::string path = "/v1/sessions/" + at(opened, "session").string + "/append";
  const Reply refused = post(path, points(2100));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.error().find("--max-memory"), std::string::npos) << refused.body;
  std::int64_t length = 2;
  for (int i = 0; i < 4; ++i) {
    const Json answer = parsed(post(path, points(900)));
    length += 900;
    EXPECT_EQ(at(answer, "length").integer, length) << "what was appended stays counted";
    EXPECT_EQ(at(answer, "kept").integer, i < 2 ? length : 1536);
  }
}

TEST_F(Guard, SessionsTogetherHaveALimitToo) {
  service_options_.sessions.max_histories = 8000;  // 2000 points
  start();
  const auto open = [&] { return post("/v1/sessions", "{\"series\": " + points(1500) + "}"); };
  const std::string path = "/v1/sessions/" + at(parsed(open()), "session").string;
  const Reply refused = open();
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.error().find("close one"), std::string::npos) << refused.body;
  EXPECT_EQ(post(path + "/append", points(501)).status, 429);
  EXPECT_EQ(at(parsed(post(path + "/append", points(500))), "length").integer, 2000);
  EXPECT_EQ(ask("DELETE", path).status, 200);
  EXPECT_EQ(open().status, 200);
}

// A page of an allowed origin can read why it was refused, and traces do not end there.
TEST_F(Guard, RefusalsHaveTheHeadersOfAnswers) {
  service_options_.access.api_key = "k";
  service_options_.access.cors = "https://desk.example.org";
  start();
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  for (const char* path : {"/v1/status", "/nothing"}) {
    Reply reply = get(
        path, fmt::format("Origin: https://desk.example.org\r\ntraceparent: {}\r\n{}", trace,
                          path == std::string("/nothing") ? "Authorization: Bearer k\r\n" : ""));
    EXPECT_GE(reply.status, 401);
    EXPECT_EQ(reply.headers["access-control-allow-origin"], "https://desk.example.org") << path;
    EXPECT_EQ(reply.headers["vary"], "Origin") << path;
    EXPECT_EQ(reply.headers["traceparent"], trace) << path;
  }
}

// Those of a connection too, which ask nobody what to do.
TEST_F(Guard, RefusalsOfConnectionsHaveThemToo) {
  service_options_.access.cors = "https://desk.example.org";
  http_options_.header_timeout = http_options_.pause_timeout = milliseconds(300);
  http_options_.drain_grace = milliseconds(1500);
  start();
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto begun = [&](std::string_view length) {
    return fmt::format(
        "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nOrigin: https://desk.example.org\r\n"
        "traceparent: {}\r\nContent-Length: {}\r\n\r\n",
        trace, length);
  };
  const auto expect_headers = [&](int status, Client& client) {
    Reply reply = client.receive();
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.headers["access-control-allow-origin"], "https://desk.example.org") << status;
    EXPECT_EQ(reply.headers["traceparent"], trace) << status;
  };
  Client large = connect(), slow = connect(), twice = connect(), last = connect();
  large.send(begun("18446744073709551615"));
  expect_headers(413, large);
  slow.send(begun("10"));
  expect_headers(408, slow);
  twice.send(begun("5, 5"));
  expect_headers(400, twice);
  const std::string whole = begun("2");
  last.send(whole.substr(0, 20));
  std::this_thread::sleep_for(milliseconds(100));
  http_->drain();
  std::this_thread::sleep_for(milliseconds(50));
  last.send(whole.substr(20));
  expect_headers(503, last);
}

TEST(GuardTrace, IsWhatTheStandardSays) {
  const std::string id(31, '0'), parent(15, '0');
  EXPECT_TRUE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_TRUE(is_traceparent("00-" + id + "1-" + parent + "1-00"));
  EXPECT_FALSE(is_traceparent("00-" + id + "0-" + parent + "1-00"));
  EXPECT_FALSE(is_traceparent("00-" + id + "1-" + parent + "0-00"));
  EXPECT_FALSE(is_traceparent("00-0af7651916cd43dd-448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333--01"));
  EXPECT_FALSE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331---"));
  EXPECT_FALSE(is_traceparent("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
}

TEST_F(Guard, TheLogNamesWhoWasRefused) {
  const testing::TemporaryFolder folder;
  service_options_.log = folder / "log";
  start();
  expect_refused(400, "GET /" + std::string(1 << 20, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  expect_refused(413,
                 "POST /v1/forecast?x=1 HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Length: 18446744073709551615\r\n\r\n");
  stop();
  std::ifstream file(folder / "log");
  std::map<std::int64_t, Json> lines;  // by status: they end in any order
  for (std::string line; std::getline(file, line);) {
    Json json = io::parse_json(line, "log");
    EXPECT_EQ(at(json, "peer").string, "127.0.0.1");
    lines[at(json, "status").integer] = std::move(json);
  }
  ASSERT_EQ(lines.size(), 2u);
  const Json& large = lines[413];
  EXPECT_EQ(at(large, "method").string, "POST");
  EXPECT_EQ(at(large, "path").string, "/v1/forecast");
  EXPECT_EQ(at(large, "route").string, "/v1/forecast");
}

// Behind a proxy the log names whom it speaks for, in the proxy's own words, which come last; what
// is no address, or comes from nobody who is trusted, it does not repeat.
TEST_F(Guard, OnlyATrustedProxyNamesItsClients) {
  const auto logged = [this](bool trusted, std::string_view headers) {
    const testing::TemporaryFolder folder;
    service_options_.log = folder / "log";
    service_options_.trust_proxy = trusted;
    start();
    EXPECT_EQ(get("/health", headers).status, 200);
    stop();
    std::ifstream file(folder / "log");
    std::string line;
    EXPECT_TRUE(std::getline(file, line));
    return at(io::parse_json(line, "log"), "peer").string;
  };
  EXPECT_EQ(logged(false, "X-Forwarded-For: 203.0.113.7\r\n"), "127.0.0.1");
  EXPECT_EQ(logged(true, ""), "127.0.0.1");
  EXPECT_EQ(logged(true, "X-Forwarded-For: 10.0.0.1, 203.0.113.7\r\n"), "203.0.113.7");
  EXPECT_EQ(logged(true, "X-Forwarded-For: 10.0.0.1\r\nx-forwarded-for:  2001:db8::7 \r\n"),
            "2001:db8::7");
  for (const char* wrong : {"unknown", "203.0.113.7:443", "203.0.113.7,", "<script>"}) {
    EXPECT_EQ(logged(true, fmt::format("X-Forwarded-For: {}\r\n", wrong)), "127.0.0.1") << wrong;
  }
  // Access is another matter.
  service_options_.log = {};
  service_options_.access.api_key = "k";
  start();
  EXPECT_EQ(get("/v1/status", "X-Forwarded-For: 127.0.0.1\r\n").status, 401);
}

}  // namespace
}  // namespace toto::server
