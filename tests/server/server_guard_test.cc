// Limits that protect other clients from one request: smuggled bytes, memory, connections, time;
// and what the log records.
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
#include "server/session_store.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

class Guard : public ServerTest {
 protected:
  bool has_sessions(int count) const {
    return service_->metrics().find(fmt::format("\ntoto_sessions {}\n", count)) !=
           std::string::npos;
  }
};

// A body must never be read as another request, whatever a proxy makes of it.
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
    EXPECT_EQ(client.receive().status, 0) << "a second answer: " << coding;
    EXPECT_TRUE(client.closed()) << coding;
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

// A small body can need much memory: variates are padded to the longest, every target gets a copy
// of the known series, every window a copy of its history, and the number of paths is free.
TEST(GuardMemory, IsAddedUpBeforeItIsAllocated) {
  const RequestLimits limits{.max_memory = std::size_t{64} << 20};
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
  std::string wide = series(20'000), with_known = series(20'000, ",\"future\":[1]");
  for (int i = 0; i < 1500; ++i) {
    wide += ",{\"values\":[1]}";
    with_known += ",{\"values\":[1]}";
  }
  const auto body = [](const std::string& text) { return io::parse_json(text, "the request"); };
  expect_too_much([&] {
    prepare_v1(body(R"({"multivariate": true, "horizon": 1, "series": [)" + wide + "]}"), limits);
  });
  expect_too_much(
      [&] { prepare_v1(body(R"({"horizon": 1, "series": [)" + with_known + "]}"), limits); });
  expect_too_much([&] {
    StreamSession session;
    std::ignore = read_session(body("{\"series\": [" + wide + "]}"), limits, session);
  });
  expect_too_much([&] {
    prepare_v1(body(R"({"series": [{"values": [1, 2]}], "horizon": 1000, "samples": 100000})"),
               limits);
  });
  std::string y = "1";
  for (int i = 1; i < 20'000; ++i) y += ",1";
  for (const char* more : {R"("h": 1, "n_windows": 10000)", R"("full_history": true)"}) {
    RequestLimits small = limits;
    small.max_memory = std::size_t{8} << 20;
    expect_too_much([&] {
      prepare_nixtla_cross_validation(
          body(fmt::format(R"({{"series": {{"y": [{}], "sizes": [20000]}}, {}}})", y, more)),
          small);
    });
  }
  // Paths are drawn where the model's first patch ends, wherever that is.
  RequestLimits short_patch{.max_memory = 20'000,
                            .facts = {.patch = 16, .block = 16, .can_sample = true}};
  const char* beyond = R"({"series": [{"values": [1, 2]}], "horizon": 40})";
  expect_too_much([&] { prepare_v1(body(beyond), short_patch); });
  short_patch.facts.patch = short_patch.facts.block = 40;
  EXPECT_EQ(prepare_v1(body(beyond), short_patch).options.horizon, 40);
  // Kept samples are priced by the engine's own rule: 256 paths of 64 steps are 65,536 bytes.
  const RequestLimits few{.max_memory = 60'000};
  const std::string exact = R"({"series": [{"values": [1, 2]}], "horizon": 64)";
  EXPECT_EQ(prepare_v1(body(exact + "}"), few).options.horizon, 64);
  expect_too_much([&] { prepare_v1(body(exact + R"(, "emit": "samples"})"), few); });
  const PreparedRequest fits = prepare_v1(body("{\"series\": [" + series(20'000) + "]}"), limits);
  EXPECT_EQ(fits.series.at(0).length(), 20'000u);
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
    // Its memory is free again: this one is read, and is not JSON.
    EXPECT_EQ(post("/v1/forecast", small, "Content-Encoding: gzip\r\n").status, 400);
  }
}

// With a stalled reader a line is written if it fits, and dropped otherwise.
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
  const bool in_time = written.wait_for(kPatience) == std::future_status::ready;
  std::string text(65536, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  EXPECT_TRUE(in_time);
  // Releases a writer that waits.
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
  // On a busy machine a short request may miss its deadline too: again.
  const auto post_in_time = [this](const std::string& path, const char* body) {
    Reply reply;
    do reply = post(path, body);
    while (reply.status == 503);
    return parsed(reply);
  };
  const auto expect_late = [this](const std::string& path, const char* body) {
    const Reply reply = post(path, body);
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.error().find("in time"), std::string::npos) << reply.body;
  };
  const Json opened = post_in_time("/v1/sessions", R"({"series": {"values": [1, 2, 3]}})");
  const std::string path = "/v1/sessions/" + at(opened, "session").string;
  expect_late(path + "/forecast", R"({"horizon": 50000, "samples": 100})");
  // The point stays although the forecast is late, once an engine has begun with it.
  std::int64_t length = 3;
  while (length == 3) {
    expect_late(path + "/append", R"({"values": [4], "horizon": 50000, "samples": 100})");
    length = at(post_in_time(path + "/append", R"({"values": []})"), "length").integer;
  }
  EXPECT_EQ(length, 4);
}

TEST_F(Guard, DeadlinesAreAnsweredWhileTheEngineIsBusy) {
  service_options_.deadline = milliseconds(500);
  start();
  const BusyEngine busy(service_->scheduler());
  for (const char* route : {"/v1/forecast", "/v1/sessions"}) {
    Client client = connect();
    client.send(request_text(
        "POST", route,
        route == std::string("/v1/forecast") ? kForecast : R"({"series": {"values": [1, 2]}})"));
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, 503) << route;
    EXPECT_NE(reply.body.find("in time"), std::string::npos) << reply.body;
  }
  EXPECT_TRUE(eventually([&] { return has_sessions(0); }));
}

TEST_F(Guard, SessionsThatNeverOpenedTakeNoPlace) {
  service_options_.scheduler.max_queued = 2;
  start();
  const std::string body = R"({"series": {"values": [1]}})";
  {
    const BusyEngine busy(service_->scheduler());
    const auto gone = std::make_shared<std::atomic<bool>>(false);
    hand_over("/v1/sessions", body, [](const HttpResponse&) {}, gone);
    ASSERT_EQ(service_->scheduler().depth(), 2u);
    EXPECT_TRUE(has_sessions(1));
    EXPECT_EQ(post("/v1/sessions", body).status, 429);
    EXPECT_TRUE(has_sessions(1));
    gone->store(true);  // the client leaves before its turn
  }
  EXPECT_TRUE(eventually([&] { return has_sessions(0); }));
  parsed(post("/v1/sessions", R"({"series": {"values": [1, 2]}})"));
  EXPECT_TRUE(has_sessions(1));
}

std::string points(int count) {
  std::string text = "{\"values\": [1";
  for (int i = 1; i < count; ++i) text += fmt::format(",{}", i % 7);
  return text + "]}";
}

// A session holds at most max_memory: a larger append is refused, and over time the oldest points
// are dropped.
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
    EXPECT_EQ(at(answer, "length").integer, length) << "dropped points stay counted";
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

// Refusals of the HTTP layer, which the service does not see.
TEST_F(Guard, RefusalsOfConnectionsHaveThemToo) {
  service_options_.access.cors = "https://desk.example.org";
  http_options_.pause_timeout = milliseconds(300);
  http_options_.header_timeout = http_options_.drain_grace = kPatience;
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
  http_->drain();
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

TEST_F(Guard, TheLogNamesRefusedClients) {
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

// Behind a trusted proxy the log names the client that the proxy adds last to the header. Texts
// that are not addresses, and headers of other peers, are ignored.
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
  // The header does not affect access.
  service_options_.log = {};
  service_options_.access.api_key = "k";
  start();
  EXPECT_EQ(get("/v1/status", "X-Forwarded-For: 127.0.0.1\r\n").status, 401);
}

}  // namespace
}  // namespace toto::server
