// Clients that break the rules, leave, pause or flood: each gets a clear refusal, and the others
// never notice.
#include <algorithm>
#include <atomic>

#include "server_fixture.h"

namespace toto::server {
namespace {

class Http : public ServerTest {};

TEST_F(Http, RefusesWhatIsNotARequest) {
  start();
  const auto post_with = [](std::string_view headers, std::string_view body = {}) {
    return fmt::format("POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\n{}\r\n{}", headers, body);
  };
  expect_refused(400, post_with("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"));
  expect_refused(400, post_with("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
                 "2 Content-Length headers");
  expect_refused(400, post_with("Content-Length: 5, 5\r\n", "hello"), "expected one length");
  expect_refused(400, post_with("Content-Length: 5,6\r\n", "hello"));
  expect_refused(400,
                 "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                 "Content-Length: 0\r\n\r\n");
  expect_refused(400,
                 post_with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"));
  expect_refused(400,
                 post_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"));
  expect_refused(400, post_with("Content-Length: +5\r\n", "hello"));
  expect_refused(400, post_with("Content-Length: 0x5\r\n", "hello"));
  expect_refused(400, post_with("Content-Length: -1\r\n"));
  expect_refused(400, post_with("Content-Length: 18446744073709551616\r\n"));
  expect_refused(413, post_with("Content-Length: 18446744073709551615\r\n"), "larger");
  expect_refused(400, post_with("Transfer-Encoding: chunked\r\n", "-2\r\n"));
  expect_refused(400, post_with("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n"));
  expect_refused(413, post_with("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\nx"));
  expect_refused(400, post_with("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"));
  expect_refused(413, post_with("Transfer-Encoding: chunked\r\n", "7fffffffffffffff\r\nx"));
  expect_refused(400, "GET /" + std::string(1 << 20, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string headers;
  for (int i = 0; i < 100'000; ++i) headers += "X: y\r\n";
  expect_refused(400, post_with(headers));
  expect_refused(400, "\x16\x03\x01 this is TLS\r\n\r\n");
  expect_refused(400, "GET /health HTTP/1.1\r\n\r\n", "Host");
  expect_refused(400, "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "Host");
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 200);
}

TEST_F(Http, BodyLimitsHold) {
  http_options_.max_body = service_options_.limits.max_body = 1000;
  start();
  EXPECT_EQ(post("/v1/forecast", std::string(1001, ' ')).status, 413);
  std::string chunks =
      "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) chunks += "64\r\n" + std::string(100, ' ') + "\r\n";
  expect_refused(413, chunks + "0\r\n\r\n", "1000");
}

TEST_F(Http, OnlyThisHostAndOrigin) {
  start();
  const auto with = [&](std::string_view host, std::string_view more = {}) {
    Client client = connect();
    client.send(fmt::format("GET /v1/status HTTP/1.1\r\nHost: {}\r\n{}\r\n", host, more));
    return client.receive().status;
  };
  EXPECT_EQ(with("localhost:8080"), 200);
  EXPECT_EQ(with("127.0.0.1"), 200);
  EXPECT_EQ(with("[::1]:80"), 200);
  EXPECT_EQ(with("example.org"), 403);
  EXPECT_EQ(with("127.0.0.1.example.org"), 403);
  EXPECT_EQ(with("localhost", "Origin: http://localhost\r\n"), 200);
  EXPECT_EQ(with("localhost", "Origin: https://example.org\r\n"), 403);
  EXPECT_EQ(with("localhost", "Origin: null\r\n"), 403);
}

TEST_F(Http, CorsOnlyIfAskedFor) {
  service_options_.access.cors = "https://desk.example.org";
  start();
  const std::string origin = "Origin: https://desk.example.org\r\n";
  EXPECT_EQ(get("/health", origin).headers["access-control-allow-origin"],
            "https://desk.example.org");
  EXPECT_EQ(get("/health").headers.count("access-control-allow-origin"), 0u);
  const Reply preflight = ask("OPTIONS", "/v1/forecast", {}, origin);
  EXPECT_EQ(preflight.status, 204);
  for (const char* name : {"Authorization", "Content-Type", "Content-Encoding",
                           "Inference-Header-Content-Length", "traceparent"}) {
    EXPECT_NE(preflight.headers.at("access-control-allow-headers").find(name), std::string::npos)
        << name;
  }
  EXPECT_NE(get("/v2", origin).headers["access-control-expose-headers"].find("Inference-Header"),
            std::string::npos)
      << "where the tensors of an answer begin";
}

TEST_F(Http, KeysGuardEverythingButHealth) {
  service_options_.access.api_key = "right-key";
  start();
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/v2/health/ready").status, 200);
  for (const char* path : {"/", "/metrics", "/v1/status", "/v2", "/nothing"}) {
    EXPECT_EQ(get(path).status, 401) << path;
  }
  EXPECT_EQ(get("/metrics", "Authorization: Bearer right-kez\r\n").status, 401);
  EXPECT_EQ(get("/metrics", "Authorization: Bearer right-key2\r\n").status, 401);
  EXPECT_EQ(get("/metrics", "Authorization: Bearer \r\n").status, 401);
  EXPECT_EQ(get("/metrics", "Authorization: Basic right-key\r\n").status, 401);
  EXPECT_EQ(get("/metrics", "Authorization: bearer right-key\r\n").status, 200);
  EXPECT_NE(get("/validate_api_key").body.find("\"detail\""), std::string::npos);
  const std::string key = "Authorization: Bearer right-key\r\n";
  EXPECT_EQ(post("/v1/mode", R"({"mode": "fast"})", key).status, 400);
  EXPECT_EQ(post("/v1/mode", R"({"mode": "reference"})", key).body,
            "{\"mode\":\"reference\",\"warnings\":[]}\n");
  EXPECT_EQ(at(parsed(get("/v1/status", key)), "mode").string, "reference");
  EXPECT_TRUE(same_text("abc", "abc"));
  EXPECT_FALSE(same_text("abc", "abcabc"));
  EXPECT_FALSE(same_text("abc", ""));
}

TEST_F(Http, HeadIsGetWithoutABody) {
  start();
  for (const auto& [path, status] :
       {std::pair("/health", "200"), std::pair("/v1/forecast", "404"), std::pair("/x", "404")}) {
    Client client = connect();
    client.send(request_text("HEAD", path, {}, "Connection: close\r\n"));
    ASSERT_TRUE(client.closed());
    EXPECT_TRUE(client.unread().starts_with(std::string("HTTP/1.1 ") + status)) << client.unread();
    EXPECT_TRUE(client.unread().ends_with("\r\n\r\n")) << client.unread();
    EXPECT_EQ(client.unread().find("Content-Length: 0"), std::string::npos);
  }
  EXPECT_NE(service_->metrics().find("{route=\"/health\",status=\"200\"} 1"), std::string::npos);
}

TEST_F(Http, PipelinedRequestsAreAnsweredInOrder) {
  start();
  Client client = connect();
  std::string all;
  for (int i = 1; i <= 20; ++i) {
    all +=
        request_text("POST", "/v1/forecast",
                     fmt::format(R"({{"series": [{{"values": [1, 2, 3]}}], "horizon": {}}})", i));
  }
  client.send(all);
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(at(parsed(client.receive()), "horizon").integer, i);
  }
}

TEST_F(Http, GarbageBehindARequestIsRefusedAfterItsAnswer) {
  start();
  Client client = connect();
  client.send(request_text("POST", "/v1/forecast", kForecast) + std::string(1000, '\x07'));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive().status, 400);
  EXPECT_TRUE(client.closed());
}

TEST_F(Http, ContinuesWhenAskedAndPassesTracesOn) {
  start();
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  Client client = connect();
  client.send(
      fmt::format("POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                  "traceparent: {}\r\nContent-Length: {}\r\n\r\n",
                  trace, kForecast.size()));
  client.send(kForecast);
  const Reply reply = client.receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("traceparent"), trace);
}

TEST_F(Http, AMillionTinyChunks) {
  start();
  Client client = connect();
  client.send(
      "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string chunks;
  for (int i = 0; i < 10'000; ++i) chunks += "1\r\n \r\n";
  bool open = true;
  for (int i = 0; i < 100 && open; ++i) open = client.send(chunks);
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.receive().status, 400);  // a million blanks are not JSON
}

TEST_F(Http, SlowClientsAreDroppedAndDoNotDelayOthers) {
  http_options_.header_timeout = milliseconds(300);
  http_options_.pause_timeout = milliseconds(300);
  http_options_.body_timeout = milliseconds(600);
  start();
  std::vector<Client> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(connect());
    slow.back().send(i % 2 == 0 ? "GET /health HT"
                                : "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 200000000\r\n\r\n[");
  }
  // On a busy machine even this request may take longer than 300 ms to arrive: again.
  for (int i = 0; i < 20; ++i) {
    Reply reply;
    do reply = post("/v1/forecast", kForecast);
    while (reply.status == 408);
    EXPECT_EQ(reply.status, 200);
  }
  for (Client& client : slow) {
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, 408);
    EXPECT_TRUE(client.closed());
  }
  // A client that keeps sending single bytes is dropped at body_timeout.
  Client trickle = connect();
  trickle.send("POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  while (trickle.send(" ") && !trickle.closed(milliseconds(50))) {
  }
  EXPECT_TRUE(trickle.unread().starts_with("HTTP/1.1 408 ")) << trickle.unread();
}

TEST_F(Http, IdleConnectionsMakeRoom) {
  http_options_.max_connections = 8;
  start();
  std::vector<Client> idle;
  for (int i = 0; i < 30; ++i) idle.push_back(connect());
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 200);
}

TEST_F(Http, LargeBodiesInSumAreRefused) {
  http_options_.max_bodies = 100'000;
  start();
  EXPECT_EQ(post("/v1/forecast", std::string(200'000, ' ')).status, 503);
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 200);
}

TEST_F(Http, AFullQueueSaysWhenToTryAgain) {
  service_options_.scheduler.max_queued = 2;
  start();
  std::vector<Client> clients;
  {
    const BusyEngine busy(service_->scheduler());
    for (int i = 0; i < 6; ++i) {
      clients.push_back(connect());
      clients.back().send(request_text("POST", "/v1/forecast", kForecast));
    }
    const auto refused = [this] { return service_->metrics().find("\ntoto_queue_full_total 5\n"); };
    EXPECT_TRUE(eventually([&] { return refused() != std::string::npos; }));
  }
  int refused = 0;
  for (Client& client : clients) {
    const Reply reply = client.receive();
    if (reply.status != 429) continue;
    ++refused;
    EXPECT_EQ(reply.headers.at("retry-after"), "1");
  }
  EXPECT_EQ(refused, 5) << "one waited behind the engine";
}

TEST_F(Http, WorkOfClientsThatLeftIsCancelled) {
  start();
  {
    Client client = connect();
    client.send(
        request_text("POST", "/v1/forecast",
                     R"({"series": [{"values": [1, 2, 3]}], "horizon": 50000, "samples": 100})"));
    EXPECT_TRUE(eventually([this] { return service_->scheduler().depth() > 0; }));
  }
  EXPECT_TRUE(eventually([this] { return service_->scheduler().depth() == 0; }));
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 200);
  // A client that leaves is not an error of the server.
  const auto counted = [&](std::string_view line) {
    return service_->metrics().find(line) != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return counted("toto_errors_total{kind=\"client_left\"} 1\n"); }));
  EXPECT_TRUE(counted("toto_errors_total{kind=\"unavailable\"} 0\n"));
  EXPECT_TRUE(counted("toto_requests_total{route=\"/v1/forecast\",status=\"499\"} 1\n"));
  EXPECT_EQ(at(parsed(get("/v1/status")), "errors").integer, 0);
}

TEST_F(Http, DeadlinesEndWork) {
  service_options_.deadline = milliseconds(100);
  start();
  const Reply reply = post(
      "/v1/forecast", R"({"series": [{"values": [1, 2, 3]}], "horizon": 50000, "samples": 100})");
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.error().find("in time"), std::string::npos);
}

TEST_F(Http, AnswersHealthWhileLoading) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  const auto load = service_options_.load;
  service_options_.load = [gate, load](Mode mode) {
    gate.wait();
    return load(mode);
  };
  start(false);
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(get("/health").body, "{\"status\":\"loading\"}\n");
  EXPECT_EQ(get("/v2/health/live").status, 200);
  EXPECT_EQ(get("/v2/health/ready").status, 503);
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 503);
  EXPECT_NE(get("/metrics").body.find("toto_ready 0"), std::string::npos);
  go.set_value();
  EXPECT_TRUE(eventually([this] { return get("/health").status == 200; }));
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 200);
}

// Every request that was sent before or while the server stops gets an answer.
TEST_F(Http, DrainsWithoutALostAnswer) {
  start();
  std::atomic<int> answered{0}, lost{0}, refused{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (;;) {
        Client client = connect();
        if (!client.connected()) return;
        for (bool alive = true; alive;) {
          if (!client.send(request_text("POST", "/v1/forecast", kForecast))) break;
          const Reply reply = client.receive();
          if (reply.status == 0) {
            // A connection made while the listener closes may never have been accepted.
            if (!stopping) ++lost;
            return;
          }
          (reply.status == 200 ? answered : refused)++;
          const auto connection = reply.headers.find("connection");
          alive = connection == reply.headers.end() || connection->second != "close";
        }
        if (stopping) return;
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return answered >= 20; }));
  stopping = true;
  http_->drain();
  EXPECT_TRUE(http_->wait(kPatience));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
}

TEST_F(Http, RefusesAPortInUseAndBadKeyPairs) {
  start();
  HttpOptions same = http_options_;
  same.port = port_;
  ErrorCode code{};
  EXPECT_NE(testing::error_of([&] { HttpServer other(same, *service_); }, &code).find("port"),
            std::string::npos);
  EXPECT_EQ(code, ErrorCode::overloaded);
  HttpOptions tls;
  tls.port = 0;
  tls.tls_cert = model() + "/config.json";
  tls.tls_key = model() + "/no-such-key.pem";
  EXPECT_NE(testing::error_of([&] { HttpServer other(tls, *service_); }, &code)
                .find("no-such-key.pem: cannot be read: No such file"),
            std::string::npos);
  EXPECT_EQ(code, ErrorCode::not_found);
  tls.tls_key = tls.tls_cert;
  EXPECT_NE(testing::error_of([&] { HttpServer other(tls, *service_); }, &code).find("certificate"),
            std::string::npos);
}

}  // namespace
}  // namespace toto::server
