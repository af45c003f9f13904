// `toto serve` as it is run: flags and variables, TLS, backtests; answers as the command line's.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "serve_fixture.h"

namespace toto::cli {
namespace {

class Serve : public ServeTest {
 protected:
  // What Python's own client gets: the status, a blank and the body.
  std::string ask(const std::string& method, const std::string& path, const std::string& body = {},
                  const std::string& headers = "{}", bool tls = false) {
    file("ask.py",
         "import http.client, ssl, sys\n"
         "tls, port, method, path, headers = sys.argv[1:]\n"
         "context = ssl._create_unverified_context()\n"
         "make = (lambda: http.client.HTTPSConnection('127.0.0.1', int(port), context=context)) if "
         "tls == 'tls' "
         "else (lambda: http.client.HTTPConnection('127.0.0.1', int(port)))\n"
         "c = make()\n"
         "c.request(method, path, open('body').read() or None, eval(headers))\n"
         "r = c.getresponse()\n"
         "print(r.status, r.getheader('Location', ''))\n"
         "print(r.read().decode())\n");
    file("body", body);
    const Result result = shell("python3 ask.py " + std::string(tls ? "tls" : "plain") + " " +
                                port_ + " " + method + " '" + path + "' \"" + headers + "\"");
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  void make_key_pair() {
    ASSERT_EQ(shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                    "-subj /CN=localhost -keyout key.pem -out cert.pem 2>/dev/null")
                  .exit_code,
              0);
  }
};

TEST_F(Serve, RefusesWrongFlags) {
  expect_refusal(2, {"--port", "65535"}, {"serve", "--port", "70000"});
  expect_refusal(2, {"TOTO_SERVE_PORT", "x"}, {"serve"}, {{"TOTO_SERVE_PORT", "x"}});
  expect_refusal(2, {"--max-body", "256M"}, {"serve", "--max-body", "256Q"});
  expect_refusal(2, {"--tls-cert", "--tls-key"}, {"serve", "--tls-cert", "x.pem"});
  expect_refusal(3, {"x.pem: cannot be read: No such file", "certificate"},
                 {"serve", "--port", "0", "--tls-cert", "x.pem", "--tls-key", "x.pem"});
  expect_refusal(2, {"--shadow-rate"}, {"serve", "--shadow-rate", "2"});
  expect_refusal(2, {"--shadow-bound"}, {"serve", "--dtype", "int8", "--shadow-rate", "0.1"});
  expect_refusal(2, {"--auto-rollback"}, {"serve", "--auto-rollback", "--shadow-rate", "0"});
  for (const char* never : {"example.org", "https://a.example/", "https://", "https://A.example",
                            "https://a.example:443", "https://a.example/page", "*"}) {
    expect_refusal(2, {"--cors", never}, {"serve", "--cors", never});
  }
  expect_refusal(2, {"--api-key", "--api-key-file"},
                 {"serve", "--api-key", "a", "--api-key-file", "b"});
  expect_refusal(3, {"nokey"}, {"serve", "--api-key-file", "nokey"});
  file("zero", std::string("key\0rest\n", 9));
  expect_refusal(2, {"zero holds no usable key"}, {"serve", "--api-key-file", "zero"});
  expect_refusal(2, {"host"}, {"serve", "--host", "nowhere.invalid"});
  expect_refusal(3, {"nomodel"}, {"serve", "--model", "nomodel"});
  expect_refusal(2, {"log"}, {"serve", "--port", "0", "--log", "/no/such/folder/log"});
}

TEST_F(Serve, AddressesCanBeCopied) {
  running_.emplace(start({"serve", "--port", "0", "--host", "::1"}));
  EXPECT_TRUE(testing::eventually([this] { return has(running_->err_so_far(), "\n"); }));
  const std::string said = running_->err_so_far();
  if (has(said, "error: cannot")) {
    running_->wait();
    running_.reset();
    GTEST_SKIP() << "no IPv6 here: " << said;
  }
  EXPECT_TRUE(has(said, "listening on http://[::1]:")) << said;
  EXPECT_EQ(stop().exit_code, 0);
}

// Everything that --help names, with its variable set to something wrong.
TEST_F(Serve, EveryFlagHasAVariable) {
  const std::map<std::string, std::string> wrong = {{"host", "nowhere.invalid"},
                                                    {"port", "x"},
                                                    {"api-key", "a b"},
                                                    {"api-key-file", "nokey"},
                                                    {"tls-cert", "x.pem"},
                                                    {"tls-key", "x.pem"},
                                                    {"cors", "example.org"},
                                                    {"queue", "0"},
                                                    {"deadline", "0"},
                                                    {"max-body", "1Q"},
                                                    {"max-series", "0"},
                                                    {"max-horizon", "0"},
                                                    {"max-samples", "0"},
                                                    {"max-memory", "1Q"},
                                                    {"max-sessions", "0"},
                                                    {"max-connections", "0"},
                                                    {"shadow-rate", "2"},
                                                    {"shadow-bound", "-1"},
                                                    {"auto-rollback", "perhaps"},
                                                    {"log", "/no/such/folder"},
                                                    {"trust-proxy", "perhaps"},
                                                    {"mode", "fast"},
                                                    {"no-kv-cache", "perhaps"},
                                                    {"model", "nomodel"},
                                                    {"dtype", "f17"},
                                                    {"threads", "x"},
                                                    {"isa", "sse9"},
                                                    {"seed", "x"},
                                                    {"plan-cache-size", "x"},
                                                    {"no-cache", "perhaps"},
                                                    {"config", "noconfig"}};
  const std::string help = run({"serve", "--help"}).out;
  std::size_t count = 0;
  for (std::size_t at_flag = help.find("\n  --"); at_flag != help.npos;
       at_flag = help.find("\n  --", at_flag + 1)) {
    const std::size_t begin = at_flag + 5;
    const std::string name = help.substr(begin, help.find_first_of(" \n", begin) - begin);
    if (name == "cache-dir") continue;  // any folder will do: see below
    ++count;
    ASSERT_TRUE(wrong.contains(name)) << name;
    std::string variable = "TOTO_SERVE_" + name;
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
    Environment environment = {{variable, wrong.at(name)}};
    if (name != "port") environment["TOTO_SERVE_PORT"] = "0";
    const Result result = run({"serve"}, environment);
    EXPECT_GT(result.exit_code, 1) << variable;
    const bool named = has(result.err, variable) || has(result.err, wrong.at(name) + ":") ||
                       has(result.err, "\"" + wrong.at(name) + "\"");
    EXPECT_TRUE(named) << variable << ": " << result.err;
  }
  EXPECT_EQ(count, wrong.size());
}

TEST_F(Serve, SettingsAreShownWithTheirOrigin) {
  file("toto.conf", "serve-queue = 7\n");
  const Result shown = run({"config", "show", "--json", "-"},
                           {{"TOTO_SERVE_PORT", "1234"}, {"TOTO_SERVE_API_KEY", "hush"}});
  EXPECT_FALSE(has(shown.out, "hush"));
  const std::string help = run({"serve", "--help"}).out;
  std::size_t count = 0;
  const io::Json report = json_of(shown);
  for (const io::Json& row : at(report, "settings").array) {
    const std::string name = at(row, "name").string, value = at(row, "value").string;
    if (!name.starts_with("serve-")) continue;
    ++count;
    const std::string origin = at(row, "origin").string;
    if (name == "serve-port") {
      EXPECT_EQ(value + origin, "1234TOTO_SERVE_PORT");
    } else if (name == "serve-queue") {
      EXPECT_EQ(value + origin, "7toto.conf:1: serve-queue");
    } else if (name == "serve-api-key") {
      EXPECT_EQ(value + origin, "(not shown)TOTO_SERVE_API_KEY");
    } else {  // the default that --help names
      EXPECT_EQ(origin, "default");
      const std::size_t from = help.find("\n  --" + name.substr(6) + " ");
      ASSERT_NE(from, help.npos) << name;
      const std::size_t end = std::min(help.find("\n  --", from + 1), help.size());
      std::string text = help.substr(from, end - from);
      text.erase(std::unique(text.begin(), text.end(),
                             [](char a, char b) { return std::isspace(a) && std::isspace(b); }),
                 text.end());
      std::replace(text.begin(), text.end(), '\n', ' ');
      EXPECT_TRUE(has(text, "(default " + (value == "0" ? "off" : value))) << text;
    }
  }
  EXPECT_EQ(count, 21u);
  file("toto.conf", "serve-port = 70000\n");
  expect_refusal(2, {"toto.conf:1: serve-port", "65535"}, {"serve"});
}

TEST_F(Serve, RunsByVariablesAlone) {
  file("key", "from-a-file\n");
  serve({}, {{"TOTO_SERVE_PORT", "0"},
             {"TOTO_SERVE_API_KEY_FILE", path("key")},
             {"TOTO_SERVE_MODE", "reduce-overhead"},
             {"TOTO_SERVE_CACHE_DIR", path("cache")},
             {"TOTO_SERVE_LOG", path("log")},
             {"TOTO_SERVE_MAX_HORIZON", "2"},
             {"TOTO_SERVE_SEED", "5"}});
  const std::string key = "{'Authorization': 'Bearer from-a-file'}";
  EXPECT_TRUE(ask("GET", "/v1/status").starts_with("401"));
  EXPECT_TRUE(has(ask("GET", "/v1/status", "", key), "\"mode\": \"reduce-overhead\""));
  EXPECT_TRUE(has(ask("POST", "/v1/forecast", kForecast, key),
                  "horizon is 3, expected a whole number from 1 to 2"));
  EXPECT_TRUE(
      has(ask("POST", "/v1/forecast", R"({"series": [{"values": [1, 2]}], "horizon": 1})", key),
          "\"seed\": 5"));
  const Result result = stop();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(path("cache/weights")));
  const std::string log = contents_of(path("log"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4);
  EXPECT_FALSE(has(log, "from-a-file")) << "keys are never logged";
  const io::Json line = io::parse_json(log.substr(0, log.find('\n')), "log");
  EXPECT_EQ(at(line, "status").integer, 401);
  EXPECT_EQ(at(line, "path").string, "/v1/status");
}

TEST_F(Serve, TalksTls) {
  make_key_pair();
  serve({"--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"});
  EXPECT_TRUE(ask("GET", "/health", "", "{}", true).starts_with("200"));
  EXPECT_TRUE(ask("POST", "/v1/forecast", kForecast, "{}", true).starts_with("200"));
  EXPECT_EQ(stop(SIGINT).exit_code, 0);
}

TEST_F(Serve, AnswersAsTheCommandLine) {
  std::string csv = "date,a\n", values;
  for (int i = 0; i < 100; ++i) {
    csv += fmt::format("{},{}\n",
                       tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}),
                       (i * 37) % 101);
    values += fmt::format("{}{}", i > 0 ? "," : "", (i * 37) % 101);
  }
  file("a.csv", csv);
  serve({"--port", "0"});
  const std::string answer = ask(
      "POST", "/v1/forecast",
      fmt::format(
          R"({{"series": [{{"id": "a", "start": "2024-01-01", "freq": "D", "values": [{}]}}], "horizon": 70}})",
          values));
  const Result line = run({"forecast", "a.csv", "--horizon", "70", "--output", "-"});
  // Everything but the times it took.
  const auto numbers = [](const std::string& text) {
    return text.substr(text.find('{'), text.find("timings_ms") - text.find('{'));
  };
  EXPECT_EQ(numbers(answer), numbers(line.out));
}

TEST_F(Serve, RefusesAPortInUse) {
  serve({"--port", "0"});
  const Result second = run({"serve", "--port", port_});
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_TRUE(has(second.err, "choose another --port")) << second.err;
}

TEST_F(Serve, Backtests) {
  ASSERT_EQ(
      shell("(head -1 '" + data("AAPL.csv") + "'; tail -150 '" + data("AAPL.csv") + "') > AAPL.csv")
          .exit_code,
      0);
  const Result line =
      run({"backtest", "AAPL.csv", "--windows", "5", "--json", "-", "--no-lag-test", "--no-cache"});
  ASSERT_EQ(line.exit_code, 0) << line.err;
  // By its path, which is not published.
  serve({"--port", "0", "--model", std::string(TOTO_SOURCE_DIR) + "/models/toto-mini"});
  io::JsonWriter body(io::JsonLayout::compact);
  body.begin_object()
      .key("csv")
      .begin_object()
      .field("AAPL", contents_of(path("AAPL.csv")))
      .end_object();
  body.key("settings").begin_object().field("windows", 5).end_object().end_object();
  const std::string request = body.take();
  const std::string answer = ask("POST", "/v1/backtest", request);
  ASSERT_TRUE(answer.starts_with("200 /v1/backtest/")) << answer.substr(0, 400);
  const io::Json ours = io::parse_json(answer.substr(answer.find('\n') + 1), "answer");
  const io::Json theirs = io::parse_json(line.out, "results.json");
  io::JsonWriter a, b;
  a.value(at(ours, "symbols"));
  b.value(at(theirs, "symbols"));
  EXPECT_EQ(a.take(), b.take());
  // Names are those of the request, paths are nowhere, and asked again it says the same.
  EXPECT_EQ(at(at(ours, "data").array.at(0), "file").string, "AAPL");
  EXPECT_EQ(at(ours, "data").array.size(), 1u);
  EXPECT_EQ(at(at(ours, "data").array[0], "sha256").string,
            at(at(theirs, "data").array.at(0), "sha256").string);
  EXPECT_EQ(at(at(ours, "settings"), "data").array.at(0).string, "AAPL");
  const auto results = [](const std::string& text) { return text.substr(text.find('\n') + 1); };
  EXPECT_FALSE(has(results(answer), "/")) << results(answer);
  EXPECT_EQ(results(ask("POST", "/v1/backtest", request)), results(answer));
  const std::string report = answer.substr(4, answer.find('\n') - 4);
  EXPECT_TRUE(has(ask("GET", report), "<html"));
  EXPECT_FALSE(has(ask("GET", report), TOTO_SOURCE_DIR));
  EXPECT_TRUE(has(ask("POST", "/v1/backtest",
                      R"({"csv": {"X": "date,open,high,low,close\n2024-01-01,1,1,1,1\n",
              "Y": "symbol,date,open,high,low,close\nX,2024-01-01,1,1,1,1\n"}})"),
                  R"(csv.Y has the symbol \"X\", which csv has already)"));
  EXPECT_TRUE(has(ask("POST", "/v1/backtest", R"({"csv": {"X": "date,open\n"}})"), "\"error\""));
  EXPECT_TRUE(has(
      ask("POST", "/v1/backtest",
          R"({"csv": {"X": "date,open,high,low,close\n2024-01-01,1,1,1,1\n"}, "settings": {"window": 3}})"),
      "windows"));
}

TEST_F(Serve, SignalsAreThoseOfTheCommand) {
  const Result line = run({"signal", data("AAPL.csv"), data("BTCUSD.csv"), "--windows", "5",
                           "--json", "-", "--no-cache"});
  ASSERT_EQ(line.exit_code, 0) << line.err;
  serve({"--port", "0"});
  const auto request = [&](std::string_view setting) {
    io::JsonWriter body(io::JsonLayout::compact);
    body.begin_object().key("csv").begin_object();
    body.field("AAPL", contents_of(data("AAPL.csv")))
        .field("BTCUSD", contents_of(data("BTCUSD.csv")));
    body.end_object().key("settings").begin_object().field(setting, 5).end_object().end_object();
    return body.take();
  };
  const std::string answer = ask("POST", "/v1/signal", request("windows"));
  ASSERT_TRUE(answer.starts_with("200 ")) << answer.substr(0, 400);
  const io::Json ours = io::parse_json(answer.substr(answer.find('\n') + 1), "answer");
  io::JsonWriter a, b;
  a.value(at(ours, "symbols"));
  b.value(at(io::parse_json(line.out, "signal"), "symbols"));
  EXPECT_EQ(a.take(), b.take());
  EXPECT_GT(at(ours, "warnings").array.size(), 0u);
  EXPECT_TRUE(
      has(ask("POST", "/v1/signal", request("to")), "settings: to is a setting of a backtest"));
}

TEST_F(Serve, ABenchmarkIsOneOfTheTables) {
  serve({"--port", "0"});
  const auto request = [&](std::string_view benchmark) {
    io::JsonWriter body(io::JsonLayout::compact);
    body.begin_object().key("csv").begin_object();
    body.field("AAPL", contents_of(data("AAPL.csv"))).field("INDEX", contents_of(data("AAPL.csv")));
    body.end_object().key("settings").begin_object().field("windows", 5).field("lag_test", false);
    body.field("benchmark", benchmark).end_object().end_object();
    return body.take();
  };
  const std::string answer = ask("POST", "/v1/backtest", request("INDEX"));
  ASSERT_TRUE(answer.starts_with("200 /v1/backtest/")) << answer.substr(0, 400);
  const io::Json results = io::parse_json(answer.substr(answer.find('\n') + 1), "answer");
  EXPECT_EQ(at(results, "symbols").object.size(), 1u);
  EXPECT_EQ(at(at(results, "settings"), "data").array.size(), 1u);
  EXPECT_TRUE(has(ask("GET", answer.substr(4, answer.find('\n') - 4)), "Benchmark INDEX"));
  // Never a file of the server.
  EXPECT_TRUE(has(ask("POST", "/v1/backtest", request(data("BTCUSD.csv"))),
                  "expected the name of one of the tables"));
}

// A symbol is repeated many times in the report: 20 MB of it made 923 MB.
TEST_F(Serve, BacktestsCheckNamesAndSettings) {
  serve({"--port", "0"});
  const auto ask_for = [&](const std::string& symbol, const std::string& more = {}) {
    return ask("POST", "/v1/backtest",
               R"({"csv": {")" + symbol +
                   R"(": "date,open,high,low,close\n2024-01-01,1,1,1,1\n"})" + more + "}");
  };
  for (const std::string& bad :
       {std::string(), std::string("  "), std::string(4097, 'x'), std::string("a\\u0000"),
        std::string("a\\u001b[0m"), std::string("a\\r\\nb")}) {
    const std::string answer = ask_for(bad);
    EXPECT_TRUE(answer.starts_with("400") && has(answer, "a symbol of csv"))
        << answer.substr(0, 200);
  }
  for (const char* settings : {"[]", "\"x\"", "1"}) {
    const std::string answer = ask_for("X", fmt::format(R"(, "settings": {})", settings));
    EXPECT_TRUE(answer.starts_with("400") && has(answer, "expected an object")) << answer;
  }
}

// A service answers for itself: a variable or a line of toto.conf on its machine must not change
// the results of a client.
TEST_F(Serve, TheEnvironmentDoesNotReachABacktest) {
  ASSERT_EQ(
      shell("(head -1 '" + data("AAPL.csv") + "'; tail -150 '" + data("AAPL.csv") + "') > AAPL.csv")
          .exit_code,
      0);
  io::JsonWriter body(io::JsonLayout::compact);
  body.begin_object().key("csv").begin_object().field("AAPL", contents_of(path("AAPL.csv")));
  body.end_object().key("settings").begin_object().field("windows", 5).end_object().end_object();
  const std::string request = body.take();
  const auto results = [&](const Environment& environment) {
    serve({"--port", "0"}, environment);
    const std::string answer = ask("POST", "/v1/backtest", request);
    stop();
    EXPECT_TRUE(answer.starts_with("200 ")) << answer;
    return answer.substr(answer.find('\n') + 1);
  };
  const std::string expected = results({});
  EXPECT_TRUE(has(expected, "\"seed\": \"0\"")) << expected;
  EXPECT_EQ(results({{"TOTO_SEED", "5"},
                     {"TOTO_NUM_SAMPLES", "20"},
                     {"TOTO_AGGREGATION_SPEC", "mean"},
                     {"TOTO_COMPILE_BACKEND", "inductor"}}),
            expected);
  file("toto.conf", "seed = 6\nsamples = 30\npoint = mean\n");
  EXPECT_EQ(results({}), expected);
}

}  // namespace
}  // namespace toto::cli
