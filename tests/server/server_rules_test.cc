// What RFC 9110, 9112 and 1952 ask of a server, names on the wire, and what is given back after a
// refusal.
#include <random>

#include "gzipped.h"
#include "server/access.h"
#include "server/protocol_chronos.h"
#include "server/protocol_oip.h"
#include "server/protocol_v1.h"
#include "server/request_head.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

class Rules : public ServerTest {
 protected:
  int status_of_head(const std::string& head, const std::string& body = {}) const {
    Client client = connect();
    client.send(head + "\r\n" + body);
    return client.receive().status;
  }
};

TEST_F(Rules, AFoldedHeaderLineIsRefused) {
  start();
  for (const char* fold :
       {"X: a\r\n b\r\n", "X: a\r\n\tb\r\n", " X: a\r\n", "Transfer-Encoding:\r\n chunked\r\n"}) {
    EXPECT_EQ(status_of_head(fmt::format("GET /health HTTP/1.1\r\nHost: localhost\r\n{}", fold)),
              400)
        << fold;
  }
  expect_refused(400, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", "folded");
  EXPECT_EQ(status_of_head("GET /health HTTP/1.1\r\nHost: localhost\r\nX: a b\r\n"), 200);
}

TEST_F(Rules, OnlyOneExpectationIsKnown) {
  start();
  const auto ask_with = [&](std::string_view version, std::string_view expect) {
    Client client = connect();
    client.send(
        fmt::format("POST /v1/forecast HTTP/{}\r\nHost: localhost\r\n{}Content-Length: {}\r\n"
                    "\r\n{}",
                    version, expect, kForecast.size(), kForecast));
    const int status = client.receive().status;
    return status;
  };
  EXPECT_EQ(ask_with("1.1", "Expect: 100-Continue\r\n"), 200);
  EXPECT_EQ(ask_with("1.1", "Expect: 200-ok\r\n"), 417);
  EXPECT_EQ(ask_with("1.1", "Expect: 100-continue, other\r\n"), 417);
  EXPECT_EQ(ask_with("1.1", "Expect: 100-continue\r\nExpect: other\r\n"), 417);
  EXPECT_EQ(ask_with("1.0", "Expect: other\r\n"), 200) << "HTTP/1.0 has no expectations";
  // No interim answer to HTTP/1.0, which would take it for the answer.
  Client client = connect();
  client.send(
      fmt::format("POST /v1/forecast HTTP/1.0\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  kForecast.size(), kForecast));
  ASSERT_TRUE(client.closed());
  EXPECT_TRUE(client.unread().starts_with("HTTP/1.1 200")) << client.unread().substr(0, 40);
}

TEST_F(Rules, AnAbsoluteTargetNamesTheHost) {
  start();
  const auto ask_for = [&](std::string_view target, std::string_view host = "localhost") {
    return status_of_head(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n", target, host));
  };
  EXPECT_EQ(ask_for("http://localhost:8080/health"), 200);
  EXPECT_EQ(ask_for("HTTP://127.0.0.1/health?x=1"), 200);
  EXPECT_EQ(ask_for("http://localhost"), 200) << "the page";
  EXPECT_EQ(ask_for("http://localhost/health", "example.org"), 200) << "Host is ignored";
  EXPECT_EQ(ask_for("http://example.org/health"), 403);
  EXPECT_EQ(ask_for("http://user@localhost/health"), 400);
  EXPECT_EQ(ask_for("http:///health"), 400);
  EXPECT_EQ(ask_for("ftp://localhost/health"), 404);
  const RequestTarget split = split_target("https://a:1?b=c");
  EXPECT_EQ(split.path, "/");
  EXPECT_EQ(split.query, "b=c");
  EXPECT_EQ(split.authority, "a:1");
}

TEST_F(Rules, EmptyLinesBeforeARequestAreIgnored) {
  start();
  Client client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send("\r\n\r\n" + request_text("GET", "/health"));
    EXPECT_EQ(client.receive().status, 200) << i;
  }
  std::string endless;
  for (int i = 0; i < 20'000; ++i) endless += "\r\n";
  expect_refused(400, endless, "more than 16384 bytes");
}

// Byte by byte: the same answer as in one piece.
TEST_F(Rules, ARequestMayArriveInPieces) {
  start();
  Client client = connect();
  const std::string text = "\r\n" + request_text("POST", "/v1/forecast", kForecast);
  for (const char byte : text) ASSERT_TRUE(client.send({&byte, 1}));
  EXPECT_EQ(client.receive().status, 200);
}

TEST(Host, IsParsedStrictly) {
  for (const auto& [host, name] : {std::pair{"localhost", "localhost"},
                                   {"localhost:8080", "localhost"},
                                   {"127.0.0.1:", "127.0.0.1"},
                                   {"[::1]:80", "::1"},
                                   {"[::ffff:127.0.0.1]", "::ffff:127.0.0.1"},
                                   {"a-b.c:1", "a-b.c"}}) {
    EXPECT_EQ(host_name(host), name) << host;
  }
  for (const char* host : {"", ":80", "localhost:80:80", "localhost:x", "localhost:65536", "[::1",
                           "::1", "[::1]x", "[localhost]", "[::1]:80x", "a b", "a/b", "u@localhost",
                           "a,b:1:2", "localhost:-1", "localhost:123456"}) {
    EXPECT_EQ(host_name(host), std::nullopt) << host;
  }
  for (const char* name : {"localhost", "LOCALHOST", "127.0.0.1", "127.255.0.3", "::1",
                           "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1"}) {
    EXPECT_TRUE(is_loopback(name)) << name;
  }
  for (const char* name : {"127.", "127.1", "127.0.0.1.", "127.0.0.256", "128.0.0.1", "::2",
                           "::ffff:10.0.0.1", "localhost.example.org", ""}) {
    EXPECT_FALSE(is_loopback(name)) << name;
  }
}

TEST_F(Rules, HostsThatAreNoneAreRefused) {
  start();
  EXPECT_EQ(status_of_head("GET /health HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:80\r\n"), 200);
  EXPECT_EQ(status_of_head("GET /health HTTP/1.1\r\nHost: localhost:80x\r\n"), 400);
  EXPECT_EQ(status_of_head("GET /health HTTP/1.1\r\nHost: [localhost]\r\n"), 400);
}

TEST_F(Rules, ContentCodingsAreAListOfOne) {
  start();
  const std::string once = gzipped(kForecast);
  EXPECT_EQ(
      post("/v1/forecast", once, "Content-Encoding: gzip\r\nContent-Encoding: identity\r\n").status,
      200);
  EXPECT_EQ(post("/v1/forecast", kForecast, "Content-Encoding: identity\r\n").status, 200);
  for (const char* headers :
       {"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", "Content-Encoding: gzip, gzip\r\n",
        "Content-Encoding: br\r\n", "Content-Encoding: gzip\r\nContent-Encoding: br\r\n"}) {
    const Reply refused = post("/v1/forecast", gzipped(once), headers);
    EXPECT_EQ(refused.status, 415) << headers;
    EXPECT_EQ(refused.headers.at("accept-encoding"), "gzip, deflate, zstd");
  }
}

TEST_F(Rules, AGzipFileMayHaveSeveralMembers) {
  start();
  const std::size_t half = kForecast.size() / 2;
  const std::string two =
      gzipped(kForecast.substr(0, half)) + gzipped("") + gzipped(kForecast.substr(half));
  EXPECT_EQ(post("/v1/forecast", two, "Content-Encoding: gzip\r\n").status, 200);
  EXPECT_EQ(post("/v1/forecast", two + "x", "Content-Encoding: gzip\r\n").status, 400);
  EXPECT_EQ(
      post("/v1/forecast", two.substr(0, two.size() - 1), "Content-Encoding: gzip\r\n").status,
      400);
  EXPECT_EQ(post("/v1/forecast", two + "\x1f", "Content-Encoding: gzip\r\n").status, 400);
}

// --------------------------------------------------------------------------------------- requests

Json json(std::string_view text) { return io::parse_json(text, "the request"); }

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "no error";
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::corrupt_file
               ? error.what()
               : "another error: " + std::string(error.what());
  }
}

TEST(Names, AreCheckedOnTheWire) {
  const RequestLimits limits;
  const auto v1 = [&](const std::string& id) {
    return error_of([&] {
      std::ignore = prepare_v1(
          json(R"({"series": [{"id": ")" + id + R"(", "values": [1, 2, 3]}], "horizon": 2})"),
          limits);
    });
  };
  const auto chronos = [&](const std::string& id, const std::string& covariate) {
    return error_of([&] {
      std::ignore =
          prepare_chronos(json(R"({"inputs": [{"item_id": ")" + id +
                               R"(", "target": [1, 2], "past_covariates": {")" + covariate +
                               R"(": [3, 4]}}], "parameters": {"prediction_length": 2}})"),
                          limits);
    });
  };
  EXPECT_EQ(v1("AAPL"), "no error");
  EXPECT_EQ(v1(""), "no error") << "an empty id counts as absent";
  EXPECT_EQ(v1(std::string(4096, 'x')), "no error");
  EXPECT_EQ(chronos("AAPL", "volume"), "no error");
  for (const std::string& bad : {std::string(" "), std::string(4097, 'x'), std::string("a\\u0000b"),
                                 std::string("a\\u001b[2J"), std::string("a\\r\\nb"),
                                 std::string("a\\tb"), std::string("a\\u007f")}) {
    EXPECT_TRUE(v1(bad).starts_with("series[0].id ")) << v1(bad);
    EXPECT_TRUE(chronos(bad, "volume").starts_with("inputs[0].item_id ")) << chronos(bad, "volume");
    EXPECT_TRUE(chronos("a", bad).starts_with("a name in inputs[0].past_covariates "))
        << chronos("a", bad);
  }
  EXPECT_NE(chronos("a", "").find("is blank"), std::string::npos);
}

TEST(Times, EndWithTheYear9999) {
  const RequestLimits limits;
  const auto v1 = [&](std::string_view time, int horizon) {
    return error_of([&] {
      std::ignore = prepare_v1(json(fmt::format(R"({{"series": [{{"end": "{}", "freq": "D",
          "values": [1, 2, 3]}}], "horizon": {}}})",
                                                time, horizon)),
                               limits);
    });
  };
  EXPECT_EQ(v1("9999-12-29", 2), "no error");
  EXPECT_NE(v1("9999-12-29", 3).find("pass the year 9999"), std::string::npos)
      << v1("9999-12-29", 3);
  EXPECT_NE(v1("2024-01-01", 4'000'000).find("horizon"), std::string::npos);
  const auto chronos = [&](std::string_view start) {
    return error_of([&] {
      std::ignore =
          prepare_chronos(json(fmt::format(R"({{"inputs": [{{"start": {}, "target": [1, 2]}}],
          "parameters": {{"prediction_length": 2}}}})",
                                           start)),
                          limits);
    });
  };
  EXPECT_EQ(chronos("\"2024-01-01\""), "no error");
  EXPECT_TRUE(chronos("\"garbage\"").starts_with("inputs[0].start: ")) << chronos("\"garbage\"");
  EXPECT_TRUE(chronos("[]").starts_with("inputs[0].start is ")) << chronos("[]");
}

TEST(Seeds, AreAllOf64Bits) {
  const RequestLimits limits;
  const auto seed = [&](std::string_view text) {
    return prepare_v1(
               json(fmt::format(R"({{"series": [{{"values": [1, 2]}}], "horizon": 2, "seed": {}}})",
                                text)),
               limits)
        .options.seed;
  };
  EXPECT_EQ(seed("0"), 0u);
  EXPECT_EQ(seed("9223372036854775808"), std::uint64_t{1} << 63);
  EXPECT_EQ(seed("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"18446744073709551616", "-1", "1.5", "1e3", "\"7\""}) {
    EXPECT_TRUE(error_of([&] { seed(bad); }).starts_with("seed is ")) << bad;
  }
}

TEST_F(Rules, TensorsAreNotRagged) {
  start();
  const auto infer = [&](std::string_view data) {
    return post("/v2/models/small/infer",
                fmt::format(
                    R"({{"inputs": [{{"name": "target", "datatype": "FP32", "shape": [1, 2, 3],
                    "data": {}}}], "parameters": {{"horizon": 2}}}})",
                    data))
        .status;
  };
  EXPECT_EQ(infer("[1, 2, 3, 4, 5, 6]"), 200);
  EXPECT_EQ(infer("[[[1, 2, 3], [4, 5, 6]]]"), 200);
  for (const char* ragged :
       {"[[[1, 2], [3, 4, 5, 6]]]", "[[1, 2, 3], [4, 5, 6]]", "[[1, 2, 3, 4, 5, 6]]",
        "[[[1, 2, 3, 4, 5, 6]]]", "[1, [2, 3], 4, 5, 6]", "[[[1, 2, 3], 4, 5, 6]]",
        "[[[[1, 2, 3], [4, 5, 6]]]]", "[]"}) {
    EXPECT_EQ(infer(ragged), 400) << ragged;
  }
}

// ----------------------------------------------------------------------------------- reservations

// Appends that are refused, whatever for, keep nothing reserved.
TEST_F(Rules, RefusedAppendsGiveTheirRoomBack) {
  service_options_.sessions.max_histories = 8000;  // 2000 points
  start();
  const Json opened = parsed(post("/v1/sessions", R"({"series": {"values": [1, 2]}})"));
  const std::string path = "/v1/sessions/" + at(opened, "session").string + "/append";
  const auto append = [&](std::string_view more) {
    std::string values = "1";
    for (int i = 1; i < 1000; ++i) values += ",2";
    return post(path, fmt::format(R"({{"values": [{}]{}}})", values, more)).status;
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(append(R"(, "bogus": 1)"), 400);
    EXPECT_EQ(append(R"(, "horizon": -1)"), 400);
    EXPECT_EQ(append(R"(, "end": "2024-01-01")"), 400) << "refused on the engine's thread";
    EXPECT_EQ(append(R"(, "end": 7)"), 400);
    EXPECT_EQ(append(R"(, "horizon": 1000000000)"), 400);
  }
  EXPECT_EQ(append(""), 200);
  EXPECT_EQ(append(""), 429) << "what was appended counts";
}

TEST(Reports, TogetherHaveALimit) {
  BacktestReports reports;
  const std::size_t third = BacktestReports::kMaxBytes / 3;
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(reports.add(id, std::string(third, 'x')));
  EXPECT_TRUE(reports.find("a"));
  EXPECT_TRUE(reports.add("d", std::string(third, 'x')));
  EXPECT_FALSE(reports.find("a")) << "the oldest goes first";
  EXPECT_TRUE(reports.find("b") && reports.find("c") && reports.find("d"));
  EXPECT_FALSE(reports.add("e", std::string(BacktestReports::kMaxBytes + 1, 'x')));
  EXPECT_TRUE(reports.find("b")) << "one that is not kept displaces none";
}

TEST_F(Rules, ReportsHaveRandomIdsAndOnlyIfKept) {
  std::size_t bytes = 10;
  service_options_.backtest = [&](const Json&, const ActiveEngine&, const std::function<bool()>&) {
    return BacktestFiles{"{}", std::string(bytes, 'x'), 1};
  };
  start();
  const Reply first = post("/v1/backtest", "{}"), second = post("/v1/backtest", "{}");
  const auto id_of_report = [](const Reply& reply) {
    const std::string& place = reply.headers.at("location");
    EXPECT_TRUE(place.starts_with("/v1/backtest/") && place.ends_with("/report")) << place;
    return place.substr(13, place.size() - 20);
  };
  EXPECT_EQ(id_of_report(first).size(), 32u);
  EXPECT_NE(id_of_report(first).substr(0, 8), id_of_report(second).substr(0, 8)) << "no counter";
  EXPECT_EQ(get(first.headers.at("location")).status, 200);
  bytes = BacktestReports::kMaxBytes + 1;
  const Reply large = post("/v1/backtest", "{}");
  EXPECT_EQ(large.status, 200);
  EXPECT_FALSE(large.headers.contains("location"));
}

}  // namespace
}  // namespace toto::server
