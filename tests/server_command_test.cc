// `toto serve` as it is run: flags and variables, TLS, signals, a log on a full disk, backtests.
#include <signal.h>

#include <chrono>
#include <thread>

#include "cli_fixture.h"

namespace toto::cli {
namespace {

class Serve : public CliTest {
 protected:
  // Runs the service until `stop`, or the end of the test.
  void serve(std::vector<std::string> arguments, const Environment& environment = {}) {
    arguments.insert(arguments.begin(), "serve");
    running_.emplace(start(arguments, environment));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!has(running_->err_so_far(), "ready: ") && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::string said = running_->err_so_far();
    port_ = said.substr(said.find("127.0.0.1:") + 10);
    port_.resize(port_.find('\n'));
  }
  Result stop(int signal = SIGTERM) {
    kill(running_->pid(), signal);
    const Result result = running_->wait();
    running_.reset();
    return result;
  }
  void TearDown() override {
    if (running_) stop(SIGKILL);
  }

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

  static constexpr const char* kForecast =
      R"({"series": [{"values": [1, 2, 3, 4, 5, 6, 7, 8]}], "horizon": 3})";
  std::optional<Running> running_;
  std::string port_;
};

TEST_F(Serve, RefusesWrongFlags) {
  expect_refusal(2, {"--port", "65535"}, {"serve", "--port", "70000"});
  expect_refusal(2, {"TOTO_SERVE_PORT", "x"}, {"serve"}, {{"TOTO_SERVE_PORT", "x"}});
  expect_refusal(2, {"--max-body", "256M"}, {"serve", "--max-body", "256Q"});
  expect_refusal(2, {"--tls-cert", "--tls-key"}, {"serve", "--tls-cert", "x.pem"});
  expect_refusal(3, {"x.pem"},
                 {"serve", "--port", "0", "--tls-cert", "x.pem", "--tls-key", "x.pem"});
  expect_refusal(2, {"--shadow-rate"}, {"serve", "--shadow-rate", "2"});
  expect_refusal(2, {"--shadow-bound"}, {"serve", "--dtype", "int8", "--shadow-rate", "0.1"});
  expect_refusal(2, {"--auto-rollback"}, {"serve", "--auto-rollback", "--shadow-rate", "0"});
  expect_refusal(2, {"--cors"}, {"serve", "--cors", "example.org"});
  expect_refusal(2, {"--api-key", "--api-key-file"},
                 {"serve", "--api-key", "a", "--api-key-file", "b"});
  expect_refusal(3, {"nokey"}, {"serve", "--api-key-file", "nokey"});
  expect_refusal(2, {"host"}, {"serve", "--host", "nowhere.invalid"});
  expect_refusal(3, {"nomodel"}, {"serve", "--model", "nomodel"});
  expect_refusal(2, {"log"}, {"serve", "--port", "0", "--log", "/no/such/folder/log"});
}

TEST_F(Serve, EveryFlagHasAVariable) {
  file("key", "from-a-file\n");
  serve({}, {{"TOTO_SERVE_PORT", "0"},
             {"TOTO_SERVE_API_KEY_FILE", path("key")},
             {"TOTO_SERVE_MODE", "reduce-overhead"},
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
  const std::string log = contents_of(path("log"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4);
  EXPECT_FALSE(has(log, "from-a-file")) << "keys are never logged";
  const io::Json line = io::parse_json(log.substr(0, log.find('\n')), "log");
  EXPECT_EQ(at(line, "status").integer, 401);
  EXPECT_EQ(at(line, "path").string, "/v1/status");
}

TEST_F(Serve, TalksTls) {
  ASSERT_EQ(shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "
                  "/CN=localhost "
                  "-keyout key.pem -out cert.pem 2>/dev/null")
                .exit_code,
            0);
  serve({"--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"});
  EXPECT_TRUE(ask("GET", "/health", "", "{}", true).starts_with("200"));
  EXPECT_TRUE(ask("POST", "/v1/forecast", kForecast, "{}", true).starts_with("200"));
  EXPECT_EQ(stop(SIGINT).exit_code, 0);
}

TEST_F(Serve, AnswersAsTheCommandLine) {
  std::string csv = "date,a\n", values;
  for (int i = 0; i < 100; ++i) {
    csv += fmt::format("{},{}\n", io::format_time(io::midnight({.year = 2024}) + i * io::kDay, {}),
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

TEST_F(Serve, AFullDiskUnderTheLogStopsNothing) {
  serve({"--port", "0", "--log", "/dev/full"});
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(ask("POST", "/v1/forecast", kForecast).starts_with("200"));
  EXPECT_TRUE(has(ask("GET", "/v1/status"), "\"log_lines_lost\": 3"));
}

TEST_F(Serve, StartsAgainAfterKillNine) {
  serve({"--port", "0"});
  const std::string port = port_;
  stop(SIGKILL);
  serve({"--port", port});
  EXPECT_EQ(port_, port);
  EXPECT_TRUE(ask("POST", "/v1/forecast", kForecast).starts_with("200"));
  const Result second = run({"serve", "--port", port});
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_TRUE(has(second.err, "choose another --port")) << second.err;
}

TEST_F(Serve, Backtests) {
  ASSERT_EQ(
      shell("(head -1 " + data("AAPL.csv") + "; tail -150 " + data("AAPL.csv") + ") > AAPL.csv")
          .exit_code,
      0);
  const Result line =
      run({"backtest", "AAPL.csv", "--windows", "5", "--json", "-", "--no-lag-test", "--no-cache"});
  ASSERT_EQ(line.exit_code, 0) << line.err;
  serve({"--port", "0"});
  io::JsonWriter body(io::JsonLayout::compact);
  body.begin_object()
      .key("csv")
      .begin_object()
      .field("AAPL", contents_of(path("AAPL.csv")))
      .end_object();
  body.key("settings").begin_object().field("windows", 5).end_object().end_object();
  const std::string answer = ask("POST", "/v1/backtest", body.take());
  ASSERT_TRUE(answer.starts_with("200 /v1/backtest/")) << answer.substr(0, 400);
  const io::Json ours = io::parse_json(answer.substr(answer.find('\n') + 1), "answer");
  const io::Json theirs = io::parse_json(line.out, "results.json");
  io::JsonWriter a, b;
  a.value(at(ours, "symbols"));
  b.value(at(theirs, "symbols"));
  EXPECT_EQ(a.take(), b.take());
  const std::string report = answer.substr(4, answer.find('\n') - 4);
  EXPECT_TRUE(has(ask("GET", report), "<html"));
  EXPECT_TRUE(has(ask("POST", "/v1/backtest", R"({"csv": {"X": "date,open\n"}})"), "\"error\""));
  EXPECT_TRUE(has(
      ask("POST", "/v1/backtest",
          R"({"csv": {"X": "date,open,high,low,close\n2024-01-01,1,1,1,1\n"}, "settings": {"window": 3}})"),
      "windows"));
}

}  // namespace
}  // namespace toto::cli
