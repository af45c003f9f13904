// Mixed requests on 64 connections; every answer is compared to the bit with the engine's own.
// TOTO_LOAD_SECONDS makes it longer.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "sanitized.h"
#include "server/telemetry.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::walk;

constexpr int kConnections = 64;
constexpr int kQuestions = 60;
constexpr std::size_t kAppended = 16;  // points that a session gets after it was opened

// Requests of one connection, each sent when the former is answered; SESSION is replaced by the
// session that the first one opened.
struct Question {
  std::vector<std::string> requests;
  std::size_t answer = 0;  // which one has the mean
  std::vector<float> mean;
};

// Latencies in a fixed number of bytes: the test's own records must not look like a leak.
class LatencyCounts {
 public:
  void add(Clock::duration latency) {
    const auto step = static_cast<std::size_t>(latency / kStep);
    ++counts_[std::min(step, counts_.size() - 1)];
  }
  double quantile(double level) const {  // milliseconds, rounded up to a step
    std::int64_t total = 0;
    for (const auto& count : counts_) total += count;
    std::int64_t left = static_cast<std::int64_t>(level * static_cast<double>(total));
    std::size_t step = 0;
    while (step + 1 < counts_.size() && left >= counts_[step]) left -= counts_[step++];
    return std::chrono::duration<double, std::milli>(kStep).count() * static_cast<double>(step + 1);
  }

 private:
  static constexpr std::chrono::microseconds kStep{50};
  std::vector<std::atomic<std::int64_t>> counts_ =
      std::vector<std::atomic<std::int64_t>>(200'000);  // up to 10 s
};

class Load : public ServerTest {
 protected:
  Load() {
    service_options_.model = "toto-mini";
    service_options_.load = [](Mode mode) { return Engine::load(folder(), {.mode = mode}); };
    service_options_.shadow.rate = 0.002;
  }
  static std::string folder() { return std::string(TOTO_SOURCE_DIR) + "/models/toto-mini"; }

  static std::string binary_request(const std::vector<float>& values, int horizon) {
    const std::size_t bytes = values.size() * sizeof(float);
    const std::string header = fmt::format(
        R"({{"inputs": [{{"name": "target", "datatype": "FP32", "shape": [1, 1, {}],
             "parameters": {{"binary_data_size": {}}}}}], "parameters": {{"horizon": {},
             "samples": 16, "quantiles": "0.1,0.9"}}}})",
        values.size(), bytes, horizon);
    return request_text("POST", "/v2/models/toto-mini/infer",
                        header + std::string(reinterpret_cast<const char*>(values.data()), bytes),
                        fmt::format("Inference-Header-Content-Length: {}\r\n", header.size()));
  }

  static std::vector<std::string> session_requests(const std::vector<float>& values, int horizon) {
    const auto appended = values.end() - kAppended;
    return {request_text("POST", "/v1/sessions",
                         fmt::format(R"({{"series": {{"values": {}}}}})",
                                     values_text({values.begin(), appended}))),
            request_text("POST", "/v1/sessions/SESSION/append",
                         fmt::format(R"({{"values": {}, "horizon": {}, "quantiles": [0.1, 0.9]}})",
                                     values_text({appended, values.end()}), horizon)),
            request_text("DELETE", "/v1/sessions/SESSION")};
  }

  // Four protocols and a session, several lengths and horizons; the same series comes back in
  // different ways.
  static std::vector<Question> questions() {
    const Engine engine = Engine::load(folder());
    std::vector<Question> all;
    for (unsigned i = 0; i < kQuestions; ++i) {
      const Series series = walk(i % 16, 128 + 64 * static_cast<int>(i % 5));
      const int horizon = i % 3 == 0 ? 1 : 24;
      const std::string values = values_text(series.values);
      Question question;
      ForecastOptions options{.horizon = horizon, .quantiles = {0.1, 0.9}};
      switch (i % 5) {
        case 0:
          question.requests = {request_text(
              "POST", "/v1/forecast",
              fmt::format(
                  R"({{"series": [{{"values": {}}}], "horizon": {}, "quantiles": [0.1, 0.9]}})",
                  values, horizon))};
          break;
        case 1:
          question.requests = {request_text(
              "POST", "/v2/forecast",
              fmt::format(R"({{"series": {{"y": {}, "sizes": [{}]}}, "h": {}, "level": [80]}})",
                          values, series.values.size(), horizon))};
          break;
        case 2:
          question.requests = {request_text(
              "POST", "/invocations",
              fmt::format(
                  R"({{"inputs": [{{"target": {}}}], "parameters": {{"prediction_length": {},
                              "quantile_levels": [0.1, 0.9]}}}})",
                  values, horizon))};
          break;
        case 3:
          options.num_samples = 16;
          question.requests = {binary_request(series.values, horizon)};
          break;
        default:
          question.requests = session_requests(series.values, horizon);
          question.answer = 1;
      }
      question.mean = engine.forecast(series, options).mean;
      all.push_back(std::move(question));
    }
    return all;
  }

  static std::string for_session(std::string request, const std::string& session) {
    constexpr std::string_view kName = "SESSION";
    if (const std::size_t at = request.find(kName); at != request.npos) {
      request.replace(at, kName.size(), session);
    }
    return request;
  }

  static std::vector<float> mean_of(const Json& answer) {
    if (const Json* series = answer.find("series")) return floats(at(series->array.at(0), "mean"));
    if (const Json* list = answer.find("predictions")) return floats(at(list->array.at(0), "mean"));
    if (const Json* outputs = answer.find("outputs"))
      return floats(at(outputs->array.at(0), "data"));
    return floats(at(answer, "mean"));
  }
};

TEST_F(Load, SixtyFourConnections) {
  const char* wanted = std::getenv("TOTO_LOAD_SECONDS");
  const double seconds = wanted != nullptr ? std::atof(wanted) : 2;
  const std::vector<Question> all = questions();
  start();
  std::atomic<std::int64_t> answered{0}, wrong{0}, failed{0};
  LatencyCounts latencies;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<std::thread> threads;
  for (int c = 0; c < kConnections; ++c) {
    threads.emplace_back([&, c] {
      Client client = connect();
      std::size_t i = static_cast<std::size_t>(c);
      for (bool first = true; first || elapsed() < seconds; first = false, ++i) {
        const Question& question = all[i % all.size()];
        std::string session;
        for (std::size_t step = 0; step < question.requests.size(); ++step) {
          const std::string request = for_session(question.requests[step], session);
          const auto sent = Clock::now();
          const Reply reply = client.send(request) ? client.receive() : Reply{};
          latencies.add(Clock::now() - sent);
          if (reply.status != 200) {
            ++failed;
            return;
          }
          ++answered;
          const Json json = io::parse_json(reply.body, "answer");
          if (const Json* opened = json.find("session")) session = opened->string;
          if (step == question.answer && mean_of(json) != question.mean) ++wrong;
        }
      }
    });
  }
  while (elapsed() < seconds / 3) std::this_thread::sleep_for(milliseconds(20));  // to measure
  const std::int64_t early_bytes = resident_bytes();
  for (std::thread& thread : threads) thread.join();
  const double time = elapsed();
  const std::int64_t grown = resident_bytes() - early_bytes;
  fmt::print(
      "{} requests in {:.1f} s, {:.0f} a second; p50 {:.2f} ms, p95 {:.2f} ms, p99 {:.2f} ms; "
      "{} checks of {} deviated; memory {:.1f} MB after a third of the time, {:.1f} MB at the "
      "end\n",
      answered.load(), time, static_cast<double>(answered) / time, latencies.quantile(0.5),
      latencies.quantile(0.95), latencies.quantile(0.99), service_->shadow_state().exceeded,
      service_->shadow_state().checked, static_cast<double>(early_bytes) / 1e6,
      static_cast<double>(early_bytes + grown) / 1e6);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0) << "lost or crossed answers";
  EXPECT_GE(answered, kConnections);
  EXPECT_EQ(service_->shadow_state().exceeded, 0);
  if (seconds >= 30) {
    EXPECT_GT(service_->shadow_state().checked, 0);
  }
  if (kSanitized) return;  // which keeps freed memory
  // A short run ends while the reference engine of the checks still loads.
  EXPECT_LT(grown, seconds < 30 ? 64 << 20 : 4 << 20);
}

// Requests that arrive together are one batch, and every answer is what it would be alone.
TEST_F(Load, RequestsThatArriveTogetherAreOneBatch) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  service_options_.load = [gate](Mode mode) { return Engine::load(folder(), {.mode = mode}); };
  start();
  // A task keeps the engine busy while the requests arrive.
  service_->scheduler().submit(
      [gate](const ActiveEngine&) -> std::int64_t {
        gate.wait();
        return 0;
      },
      LaneKind::fast, {}, Clock::time_point::max(), {});
  std::vector<Client> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(connect());
    clients.back().send(
        request_text("POST", "/v1/forecast",
                     fmt::format(R"({{"series": [{{"values": {}}}], "horizon": 8}})",
                                 values_text(walk(static_cast<unsigned>(i), 100 + i).values))));
  }
  ASSERT_TRUE(eventually([this] { return service_->scheduler().depth() == 17; }));
  go.set_value();
  const Engine engine = Engine::load(folder());
  for (int i = 0; i < 16; ++i) {
    const Json json = parsed(clients[static_cast<std::size_t>(i)].receive());
    EXPECT_EQ(mean_of(json),
              engine.forecast(walk(static_cast<unsigned>(i), 100 + i), {.horizon = 8}).mean);
  }
  EXPECT_NE(get("/metrics").body.find("toto_batch_size_sum 16\ntoto_batch_size_count 1\n"),
            std::string::npos);
}

// A large request takes turns with a smaller one of its lane, which is answered first.
TEST_F(Load, LargeRequestsTakeTurns) {
  start();
  std::mutex mutex;
  std::vector<std::size_t> answered;  // number of series, in the order of the answers
  {
    const BusyEngine busy(service_->scheduler(), LaneKind::slow);
    for (const std::size_t count : {200u, 25u}) {
      QueuedForecast queued{.options = {.horizon = 100, .num_samples = 8}};
      queued.series.assign(count, walk(1, 5));
      queued.done = [&mutex, &answered](const std::optional<Error>& error,
                                        const ForecastAnswer& answer) {
        EXPECT_FALSE(error.has_value());
        const std::lock_guard lock(mutex);
        answered.push_back(answer.forecasts.size());
      };
      service_->scheduler().submit(std::move(queued));
    }
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return answered.size() == 2;
  }));
  EXPECT_EQ(answered, (std::vector<std::size_t>{25, 200}));
}

}  // namespace
}  // namespace toto::server
