// What takes long has an engine of its own: it gives way, follows a switch of modes, and answers
// the same bits.
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
  }
  Client ask_for(std::string_view path, std::string_view body) const {
    Client client = connect();
    client.send(request_text("POST", path, body, kKey));
    return client;
  }
  Reply post_as(std::string_view path, std::string_view body) const {
    return post(path, body, kKey);
  }
  void wait_until_busy() const {
    while (service_->scheduler().depth() == 0) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(50));  // it has begun
  }
  static std::string body_of(const Series& series, std::string_view more) {
    return fmt::format(R"({{"series": [{{"values": {}}}], {}}})", values_text(series.values), more);
  }
  static std::vector<float> mean_of(const Json& answer) {
    return floats(at(at(answer, "series").array.at(0), "mean"));
  }

  static constexpr std::string_view kKey = "Authorization: Bearer k\r\n";
  // Seconds of the small model; of much less it is a slow one as well.
  static constexpr std::string_view kSeconds = R"("horizon": 400, "samples": 1500)";
};

TEST_F(SlowWork, IsOfSomeSize) {
  const ForecastOptions usual{.horizon = 24, .num_samples = 256};
  const auto pace = [](double num_variates, double length, const ForecastOptions& options) {
    return pace_of(cost_of(num_variates, length, options, 64));
  };
  EXPECT_EQ(pace(1, 4096, usual), Pace::quick);
  EXPECT_EQ(pace(1, 512, {.horizon = 640, .num_samples = 4096}), Pace::slow);
  EXPECT_EQ(pace(100, 512, usual), Pace::slow);
  EXPECT_EQ(pace(1, 100'000, {.horizon = 1, .max_context = 100'000}), Pace::slow);
  EXPECT_EQ(pace(1, 100'000, {.horizon = 1}), Pace::quick) << "4096 are looked at";
}

TEST_F(SlowWork, AnswersTheSameBitsWhileQuickRequestsPass) {
  start();
  const Series series = walk(1, 100);
  Client slow = ask_for("/v1/forecast", body_of(series, kSeconds));
  wait_until_busy();
  for (unsigned i = 0; i < 5; ++i) {
    const Reply quick = post_as("/v1/forecast", body_of(walk(i, 50), R"("horizon": 8)"));
    EXPECT_EQ(mean_of(parsed(quick)), expected(walk(i, 50), {.horizon = 8}).mean);
    EXPECT_EQ(get("/metrics", kKey).status, 200) << "counters wait for no forecast";
    EXPECT_EQ(get("/v1/status", kKey).status, 200);
  }
  EXPECT_FALSE(slow.receives(milliseconds(0))) << "it was answered too soon to show anything";
  EXPECT_EQ(mean_of(parsed(slow.receive())),
            expected(series, {.horizon = 400, .num_samples = 1500}).mean);
}

// A rollback is for all requests, those included that were on their way.
TEST_F(SlowWork, BeginsAgainAfterASwitch) {
  start();
  Client slow = ask_for("/v1/forecast", body_of(walk(1, 100), kSeconds));
  wait_until_busy();
  EXPECT_EQ(post_as("/v1/mode", R"({"mode": "default"})").status, 200);
  EXPECT_FALSE(slow.receives(milliseconds(0))) << "it was answered too soon to show anything";
  const Json answer = parsed(slow.receive());
  EXPECT_EQ(at(at(answer, "engine"), "mode").string, "default");
  EXPECT_EQ(mean_of(answer), expected(walk(1, 100), {.horizon = 400, .num_samples = 1500}).mean);
}

TEST_F(SlowWork, OfASessionMovesItOver) {
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
  Client slow = ask_for(path + "/forecast", fmt::format("{{{}}}", kSeconds));
  wait_until_busy();
  EXPECT_FALSE(slow.receives(milliseconds(0))) << "it was answered too soon to show anything";
  const Json appended = parsed(
      post_as(path + "/append", fmt::format(R"({{"values": {}, "horizon": 4}})", part(100, 120))));
  Series before = whole;
  before.values.resize(100);
  EXPECT_EQ(mean_of(parsed(slow.receive())),
            expected(before, {.horizon = 400, .num_samples = 1500}).mean);
  EXPECT_EQ(mean_of(appended), expected(whole, {.horizon = 4}).mean);
}

// A quick request that waited while a slow one of its session began is refused: waiting for it
// would hold up everybody who is quick.
TEST_F(SlowWork, OfASessionRefusesWhatQuickThreadsWouldWaitFor) {
  start();
  const Json opened = parsed(post_as("/v1/sessions", R"({"series": {"values": [1, 2, 3, 5]}})"));
  const std::string path = "/v1/sessions/" + at(opened, "session").string + "/forecast";
  std::vector<Client> clients;
  {
    const BusyEngine busy(service_->scheduler());
    clients.push_back(ask_for(path, R"({"horizon": 4})"));
    ASSERT_TRUE(soon([&] { return service_->scheduler().depth() == 2; }));
    clients.push_back(ask_for(path, fmt::format("{{{}}}", kSeconds)));
    ASSERT_TRUE(soon([&] { return service_->scheduler().depth() == 3; }));
    std::this_thread::sleep_for(milliseconds(50));  // it has begun
  }
  const Reply refused = clients[0].receive();
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.error().find("busy"), std::string::npos) << refused.body;
  EXPECT_EQ(clients[1].receive().status, 200);
}

// A backtest's results are of one mode, or there are none.
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
