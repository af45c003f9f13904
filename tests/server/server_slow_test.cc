// The slow lane: it does not delay fast requests, follows a switch of modes, and gives the same
// bits.
#include "server/scheduler.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::walk;

class SlowWork : public ServerTest {
 protected:
  SlowWork() {
    service_options_.access.api_key = "k";
    service_options_.mode = Mode::reduce_overhead;
    service_options_.shadow.rate = 0;
    service_options_.deadline = kPatience;  // at its low priority the slow lane may wait for long
  }
  Client ask_for(std::string_view path, std::string_view body) const {
    Client client = connect();
    client.send(request_text("POST", path, body, kKey));
    return client;
  }
  Reply post_as(std::string_view path, std::string_view body) const {
    return post(path, body, kKey);
  }
  // Until the slow lane has begun with its first request: it makes its engine for it.
  void wait_until_slow_lane_runs() const {
    ASSERT_TRUE(eventually([this] { return service_->scheduler().active().twin != nullptr; }));
  }
  static std::string body_of(const Series& series, std::string_view more) {
    return fmt::format(R"({{"series": [{{"values": {}}}], {}}})", values_text(series.values), more);
  }
  static std::vector<float> mean_of(const Json& answer) {
    return floats(at(at(answer, "series").array.at(0), "mean"));
  }

  static constexpr std::string_view kKey = "Authorization: Bearer k\r\n";
  // Expensive enough for the slow lane.
  static constexpr std::string_view kSlow = R"("horizon": 100, "samples": 200)";
  static constexpr int kSlowHorizon = 100, kSlowSamples = 200;
};

TEST_F(SlowWork, IsClassifiedByCost) {
  const ForecastOptions usual{.horizon = 24, .num_samples = 256};
  const auto lane = [](double num_variates, double length, const ForecastOptions& options) {
    return lane_for_cost(forecast_cost(num_variates, length, options, RequestLimits().facts));
  };
  EXPECT_EQ(lane(1, 4096, usual), LaneKind::fast);
  EXPECT_EQ(lane(1, 512, {.horizon = 640, .num_samples = 4096}), LaneKind::slow);
  EXPECT_EQ(lane(100, 512, usual), LaneKind::slow);
  EXPECT_EQ(lane(1, 100'000, {.horizon = 1, .max_context = 100'000}), LaneKind::slow);
  EXPECT_EQ(lane(1, 100'000, {.horizon = 1}), LaneKind::fast) << "the context is 4096";
  const ForecastOptions samples{.horizon = 64, .keep_samples = true};
  EXPECT_EQ(planned_paths(samples, RequestLimits().facts), kDefaultPaths);
  EXPECT_EQ(lane(2, 512, samples), LaneKind::slow) << "256 paths of 64 steps are drawn";
  EXPECT_EQ(lane(2, 512, {.horizon = 64}), LaneKind::fast) << "no path is drawn";
  EXPECT_EQ(planned_paths({.horizon = 64, .num_samples = 9, .decode = Decode::mean},
                          RequestLimits().facts),
            0);
  EXPECT_EQ(planned_paths({.horizon = 65, .num_samples = 9, .decode = Decode::mean},
                          RequestLimits().facts),
            1);
}

TEST_F(SlowWork, DoesNotDelayFastRequests) {
  start();
  const Series series = walk(1, 100);
  const auto ask_fast_ones = [this] {
    for (unsigned i = 0; i < 5; ++i) {
      const Reply fast = post_as("/v1/forecast", body_of(walk(i, 50), R"("horizon": 8)"));
      EXPECT_EQ(mean_of(parsed(fast)), expected(walk(i, 50), {.horizon = 8}).mean);
      EXPECT_EQ(get("/metrics", kKey).status, 200);
      EXPECT_EQ(get("/v1/status", kKey).status, 200);
    }
  };
  std::optional<Client> slow;
  {
    const BusyEngine busy(service_->scheduler(), LaneKind::slow);
    slow.emplace(ask_for("/v1/forecast", body_of(series, kSlow)));
    ask_fast_ones();
    EXPECT_FALSE(slow->receives(milliseconds(0)));
  }
  ask_fast_ones();  // while the slow one is computed: the bits are the same
  EXPECT_EQ(mean_of(parsed(slow->receive())),
            expected(series, {.horizon = kSlowHorizon, .num_samples = kSlowSamples}).mean);
}

// A rollback applies to all requests, those included that are being forecast.
TEST_F(SlowWork, StartsAgainAfterASwitch) {
  // Again with more paths if it was answered before the switch.
  for (int samples = kSlowSamples;; samples *= 2) {
    start();
    Client slow =
        ask_for("/v1/forecast",
                body_of(walk(1, 100), fmt::format(R"("horizon": 100, "samples": {})", samples)));
    wait_until_slow_lane_runs();
    EXPECT_EQ(post_as("/v1/mode", R"({"mode": "default"})").status, 200);
    const bool was_running = !slow.receives(milliseconds(0));
    const Json answer = parsed(slow.receive());
    EXPECT_EQ(mean_of(answer),
              expected(walk(1, 100), {.horizon = kSlowHorizon, .num_samples = samples}).mean);
    stop();
    if (!was_running) continue;
    EXPECT_EQ(at(at(answer, "engine"), "mode").string, "default");
    return;
  }
}

TEST_F(SlowWork, OfASessionMovesItToTheSlowLane) {
  start();
  const Series whole = walk(4, 120);
  const auto part = [&](std::size_t from, std::size_t to) {
    return values_text({whole.values.begin() + static_cast<std::ptrdiff_t>(from),
                        whole.values.begin() + static_cast<std::ptrdiff_t>(to)});
  };
  const Json opened = parsed(
      post_as("/v1/sessions", fmt::format(R"({{"series": {{"values": {}}}}})", part(0, 100))));
  const std::string path = "/v1/sessions/" + at(opened, "session").string;
  EXPECT_EQ(post_as(path + "/forecast", R"({"horizon": 4})").status, 200);
  Client slow = ask_for(path + "/forecast", fmt::format("{{{}}}", kSlow));
  wait_until_slow_lane_runs();
  const Json appended = parsed(
      post_as(path + "/append", fmt::format(R"({{"values": {}, "horizon": 4}})", part(100, 120))));
  Series before = whole;
  before.values.resize(100);
  EXPECT_EQ(mean_of(parsed(slow.receive())),
            expected(before, {.horizon = kSlowHorizon, .num_samples = kSlowSamples}).mean);
  EXPECT_EQ(mean_of(appended), expected(whole, {.horizon = 4}).mean);
}

// A fast request that was queued before a slow one of its session began is refused: the fast lane
// does not wait for the slow one.
TEST_F(SlowWork, OfASessionRefusesFastRequestsAlreadyQueued) {
  start();
  const auto attempt = [this](int samples) {
    const Json opened = parsed(post_as("/v1/sessions", R"({"series": {"values": [1, 2, 3, 5]}})"));
    const std::string path = "/v1/sessions/" + at(opened, "session").string + "/forecast";
    std::vector<Client> clients;
    {
      const BusyEngine busy(service_->scheduler());
      clients.push_back(ask_for(path, R"({"horizon": 4})"));
      EXPECT_TRUE(eventually([&] { return service_->scheduler().depth() == 2; }));
      clients.push_back(
          ask_for(path, fmt::format(R"({{"horizon": 100, "samples": {}}})", samples)));
      EXPECT_TRUE(eventually([&] { return service_->scheduler().depth() == 3; }));
      wait_until_slow_lane_runs();
    }
    const Reply reply = clients[0].receive();
    EXPECT_EQ(clients[1].receive().status, 200);
    return reply;
  };
  // Again with more paths if the slow one had not begun, or was answered before.
  Reply reply;
  for (int samples = kSlowSamples; reply.status != 429 && samples < 100'000; samples *= 2) {
    reply = attempt(samples);
  }
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(reply.error().find("busy"), std::string::npos) << reply.body;
}

// All results of a backtest are of one mode.
TEST_F(SlowWork, OfABacktestEndsWithASwitch) {
  std::promise<void> begun;
  service_options_.backtest = [&](const Json&, const ActiveEngine&,
                                  const std::function<bool()>& cancelled) -> BacktestFiles {
    begun.set_value();
    while (!cancelled()) std::this_thread::sleep_for(milliseconds(1));
    throw Error(ErrorCode::cancelled, "cancelled");
  };
  start();
  Client client = ask_for("/v1/backtest", "{}");
  begun.get_future().wait();
  EXPECT_EQ(post_as("/v1/mode", R"({"mode": "reference"})").status, 200);
  const Reply reply = client.receive();
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(reply.error().find("switched"), std::string::npos) << reply.body;
}

}  // namespace
}  // namespace toto::server
