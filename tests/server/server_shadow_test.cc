// Shadow verification: the service detects wrong forecasts and rolls back to reference mode.
#include "damaged_model.h"
#include "server/shadow.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::walk;

class ShadowTest : public ServerTest {
 protected:
  ShadowTest() {
    service_options_.shadow.rate = 1;
    service_options_.access.api_key = "k";
    service_options_.on_event = [this](std::string_view sentence) {
      const std::lock_guard lock(mutex_);
      events_ += std::string(sentence) + "\n";
    };
  }
  Reply forecast(unsigned seed, std::string_view more = "\"horizon\": 8") const {
    return post("/v1/forecast",
                fmt::format(R"({{"series": [{{"id": "s", "values": {}}}], {}}})",
                            values_text(walk(seed, 64).values), more),
                kKey);
  }
  ShadowState after(std::int64_t checks) const {
    EXPECT_TRUE(eventually([&] { return service_->shadow_state().checked >= checks; }));
    return service_->shadow_state();
  }
  std::string events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::string mode() const { return at(parsed(get("/v1/status", kKey)), "mode").string; }
  bool wait_for_mode(std::string_view wanted) const {
    return eventually([&] { return mode() == wanted; });
  }

  // The first engine of an optimised mode has a damaged weight; reference mode and later ones are
  // sound.
  void damage_first_load() {
    const auto loads = std::make_shared<std::atomic<int>>(0);
    const auto load = service_options_.load;
    service_options_.load = [this, loads, load](Mode mode) {
      if (mode == Mode::reference || ++*loads > 1) return load(mode);
      const std::string copy = testing::damaged_copy(model(), damaged_ / "model");
      return Engine::load(copy, {.mode = mode, .threads = 1});
    };
  }

  static constexpr std::string_view kKey = "Authorization: Bearer k\r\n";

 private:
  testing::TemporaryFolder damaged_;
  std::mutex mutex_;
  std::string events_;
};

TEST_F(ShadowTest, HealthyForecastsStayFarBelowTheBound) {
  start();
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(forecast(i).status, 200);
  EXPECT_EQ(forecast(5, "\"horizon\": 20").status, 200);
  EXPECT_EQ(forecast(6, "\"horizon\": 20, \"samples\": 16").status, 200);
  EXPECT_EQ(forecast(7, "\"horizon\": 20, \"decode\": \"mean\"").status, 200);
  const ShadowState state = after(7);
  EXPECT_EQ(state.checked, 7);
  EXPECT_EQ(state.exceeded, 0);
  EXPECT_LT(state.worst_deviation, 3e-6);
  EXPECT_EQ(events(), "");
}

TEST_F(ShadowTest, ADamagedWeightRaisesTheAlarm) {
  damage_first_load();
  start();
  EXPECT_EQ(forecast(1).status, 200);
  const ShadowState state = after(1);
  EXPECT_EQ(state.exceeded, 1);
  EXPECT_GT(state.last_deviation, 1e-5);
  EXPECT_NE(events().find("deviates"), std::string::npos);
  EXPECT_EQ(mode(), "default") << "no rollback unless asked for";
  EXPECT_NE(get("/metrics", kKey).body.find("toto_shadow_exceeded_total 1"), std::string::npos);
}

TEST_F(ShadowTest, RollsBackUntilTheModeIsSwitched) {
  service_options_.auto_rollback = true;
  damage_first_load();
  start();
  const std::vector<float> before =
      Engine::load(model()).forecast(walk(1, 64), {.horizon = 8}).mean;
  const auto mean = [](const std::string& body) {
    return floats(at(at(io::parse_json(body, "answer"), "series").array[0], "mean"));
  };
  EXPECT_NE(mean(forecast(1).body), before);
  ASSERT_TRUE(wait_for_mode("reference"));
  // Both are set after the switch.
  EXPECT_TRUE(eventually([this] { return service_->shadow_state().rolled_back; }));
  EXPECT_TRUE(eventually([this] { return events().find("rolled back") != std::string::npos; }));
  const std::vector<float> rolled = mean(forecast(1).body);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(rolled[i], before[i], 1e-4 * std::abs(before[i]));
  }
  const std::string comparing = "\ntoto_shadow_enabled 1\n";
  EXPECT_EQ(service_->metrics().find(comparing), std::string::npos) << "nothing to compare";
  EXPECT_EQ(post("/v1/mode", R"({"mode": "default"})", kKey).status, 200);
  EXPECT_EQ(mode(), "default");
  EXPECT_NE(service_->metrics().find(comparing), std::string::npos);
  EXPECT_FALSE(service_->shadow_state().rolled_back);
  EXPECT_EQ(mean(forecast(1).body), before) << "the weights were loaded again";
}

// The weights may be gone from the disk when they are needed again.
TEST_F(ShadowTest, AFailedRollbackIsTriedAgain) {
  service_options_.auto_rollback = true;
  // The first engine in reference mode is the shadow's, the second the first rollback's.
  const auto loads = std::make_shared<std::atomic<int>>(0);
  const auto load = service_options_.load;
  service_options_.load = [loads, load](Mode mode) {
    if (mode == Mode::reference && ++*loads == 2) {
      throw Error(ErrorCode::not_found, "the model is not there");
    }
    return load(mode);
  };
  damage_first_load();
  start();
  EXPECT_EQ(forecast(1).status, 200);
  EXPECT_TRUE(eventually([this] {
    return events().find("the rollback to reference mode failed: the model is not there") !=
           std::string::npos;
  })) << events();
  EXPECT_EQ(mode(), "default");
  EXPECT_FALSE(service_->shadow_state().rolled_back);
  EXPECT_EQ(forecast(2).status, 200);
  EXPECT_TRUE(wait_for_mode("reference"));
  EXPECT_TRUE(eventually([this] { return service_->shadow_state().rolled_back; }));
}

// Loading cannot be interrupted: requests that wait for it are answered when the server stops.
TEST_F(ShadowTest, StoppingAnswersRequestsThatWaitForAModel) {
  const auto load = service_options_.load;
  std::promise<void> go;
  auto loading = std::make_shared<std::atomic<bool>>(false);
  service_options_.shadow.rate = 0;
  service_options_.load = [gate = go.get_future().share(), load, loading](Mode mode) {
    if (mode == Mode::reference) {
      *loading = true;
      gate.wait();
    }
    return load(mode);
  };
  start();
  const std::string mode = request_text("POST", "/v1/mode", R"({"mode": "reference"})", kKey);
  Client first = connect(), second = connect(), behind = connect();
  first.send(mode);
  ASSERT_TRUE(eventually([&] { return loading->load(); }));
  second.send(mode);
  behind.send(request_text("POST", "/v1/forecast", R"({"series": [{"values": [1, 2, 3]}]})", kKey));
  ASSERT_TRUE(eventually([this] { return service_->scheduler().depth() > 0; }));
  service_->cancel_all();
  for (Client* client : {&first, &second, &behind}) {
    const Reply reply = client->receive();
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.body.find("shutting down"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(post("/v1/mode", R"({"mode": "reference"})", kKey).status, 503);
  go.set_value();
  stop();
}

TEST_F(ShadowTest, ReplansAreCountedOnceAcrossSwitches) {
  service_options_.shadow.rate = 0;
  service_options_.scheduler.warm_up = 1;
  service_options_.mode = Mode::reduce_overhead;  // has plans
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  const auto load = service_options_.load;
  service_options_.load = [fails, load](Mode mode) {
    if (*fails) throw Error(ErrorCode::not_found, "the model is not there");
    return load(mode);
  };
  start();
  for (int horizon : {8, 20, 40}) forecast(1, fmt::format("\"horizon\": {}", horizon));
  const auto replans = [this] { return at(parsed(get("/v1/status", kKey)), "replans").integer; };
  const std::int64_t before = replans();
  ASSERT_GT(before, 0);
  *fails = true;
  EXPECT_EQ(post("/v1/mode", R"({"mode": "reference"})", kKey).status, 404);
  EXPECT_EQ(replans(), before);
  *fails = false;
  for (const char* wanted : {"reference", "reduce-overhead"}) {
    EXPECT_EQ(post("/v1/mode", fmt::format(R"({{"mode": "{}"}})", wanted), kKey).status, 200);
    EXPECT_EQ(replans(), before) << wanted;
  }
}

TEST_F(ShadowTest, SessionsWarmUpTheEngineToo) {
  service_options_.shadow.rate = 0;
  service_options_.scheduler.warm_up = 1;
  service_options_.mode = Mode::reduce_overhead;
  start();
  const Json opened = parsed(post("/v1/sessions", R"({"series": {"values": [1, 2, 3]}})", kKey));
  const std::string path = "/v1/sessions/" + at(opened, "session").string + "/forecast";
  parsed(post(path, R"({"horizon": 8})", kKey));
  forecast(1, "\"horizon\": 40");
  EXPECT_GT(at(parsed(get("/v1/status", kKey)), "replans").integer, 0) << "a plan after warm-up";
}

TEST_F(ShadowTest, SessionsSurviveASwitchOfModes) {
  start();
  const Series series = walk(3, 60);
  const Json opened = parsed(
      post("/v1/sessions",
           fmt::format(R"({{"series": {{"values": {}}}}})", values_text(series.values)), kKey));
  const std::string path = "/v1/sessions/" + at(opened, "session").string + "/append";
  EXPECT_EQ(post(path, R"({"values": [101]})", kKey).status, 200);
  for (const char* wanted : {"reduce-overhead", "default"}) {
    EXPECT_EQ(post("/v1/mode", fmt::format(R"({{"mode": "{}"}})", wanted), kKey).status, 200);
  }
  Series now = series;
  now.values.insert(now.values.end(), {101, 102});
  const Json answer = parsed(post(path, R"({"values": [102], "horizon": 5})", kKey));
  EXPECT_EQ(floats(at(at(answer, "series").array[0], "mean")), expected(now, {.horizon = 5}).mean);
}

TEST_F(ShadowTest, AShareOfForecastsIsChecked) {
  service_options_.shadow.rate = 0.25;
  start();
  for (unsigned i = 0; i < 8; ++i) forecast(i);
  EXPECT_EQ(after(2).checked, 2);
}

constexpr int kContext = 4096;

TEST(Deviation, IsRelativeAndNeverForgivesNan) {
  const Series series = walk(1, 32);
  Forecast a;
  a.num_variates = 1;
  a.horizon = 2;
  a.mean = {100, 200};
  Forecast b = a;
  EXPECT_EQ(deviation(series, a, b, kContext), 0);
  b.mean = {101, 201};
  EXPECT_NEAR(deviation(series, a, b, kContext), 1.0 / (151 + 5), 1e-3);
  b.mean = {NAN, 201};
  EXPECT_TRUE(std::isinf(deviation(series, a, b, kContext)));
}

// Points outside the context do not change the deviation.
TEST(Deviation, IsMeasuredByWhatTheModelSees) {
  Forecast live;
  live.num_variates = 1;
  live.horizon = 2;
  live.mean = {1, 2};
  Forecast exact = live;
  exact.mean = {1.5, 2};
  const Series seen{.values = {1, 2, 1, 2}};
  const double right = deviation(seen, live, exact, 4);
  EXPECT_GT(right, 0.05);
  EXPECT_EQ(deviation({.values = {1e9F, 1, 2, 1, 2}}, live, exact, 4), right) << "older points";
  EXPECT_EQ(deviation({.values = {1, 1e9F, 2, 1, 2}, .mask = {1, 0, 1, 1, 1}}, live, exact, 5),
            deviation({.values = {1, 2, 1, 2}}, live, exact, 5))
      << "values that do not count";
  // With a second variate 10^9 times as large.
  const Series two_scales{.num_variates = 2, .values = {1, 2, 1, 2, 1e9F, -1e9F, 1e9F, -1e9F}};
  live.num_variates = exact.num_variates = 2;
  live.mean = {1, 2, 1e9F, 1e9F};
  exact.mean = {1.5, 2, 1e9F, 1e9F};
  live.quantiles = exact.quantiles = live.mean;
  live.quantiles.insert(live.quantiles.end(), {1, 2, 1e9F, 1e9F});
  exact.quantiles.insert(exact.quantiles.end(), {1.5, 2, 1e9F, 1e9F});
  EXPECT_NEAR(deviation(two_scales, live, exact, 4), right * 2 / 3, 0.1 * right);
  std::swap(live.quantiles, exact.quantiles);
  EXPECT_TRUE(std::isfinite(deviation(two_scales, live, exact, 4)));
}

// Comparisons that wait or run when the engine is switched do not count for the new engine.
TEST(ShadowChecks, AreOfTheEngineThatAnswers) {
  const testing::TemporaryFolder folder;
  const std::string model = testing::made_model(folder);
  const auto engine = std::make_shared<const Engine>(Engine::load(model, {.threads = 1}));
  std::promise<void> go;
  std::atomic<bool> loading{false}, current{true};
  std::atomic<int> exceeded{0};
  ShadowWork work;
  work.load = [&, gone = go.get_future().share()] {
    loading = true;
    gone.wait();
    return Engine::load(model, {.mode = Mode::reference, .threads = 1});
  };
  work.is_current = [&](const ActiveEngine& active) { return active.number == 1 && current; };
  work.exceeded = [&](double, const std::string&, const ActiveEngine&) { ++exceeded; };
  Shadow shadow({.rate = 1, .bound = 0}, work);
  const ActiveEngine active{.engine = engine, .number = 1};
  const Series series = walk(1, 64);
  Forecast wrong = engine->forecast(series, {.horizon = 4});
  wrong.mean[0] += 1;
  const auto offer = [&](int count) {
    for (int i = 0; i < count; ++i) shadow.offer(series, {.horizon = 4}, wrong, active);
  };
  offer(5);
  ASSERT_TRUE(eventually([&] { return loading.load(); }));
  current = false;  // while the first is at hand and four wait
  shadow.engine_switched(false);
  go.set_value();
  ASSERT_TRUE(eventually([&] { return shadow.state().dropped == 1; }));
  EXPECT_EQ(shadow.state().checked, 0);
  EXPECT_EQ(exceeded, 0);
  current = true;
  offer(1);
  ASSERT_TRUE(eventually([&] { return exceeded == 1; }));
  EXPECT_EQ(shadow.state().checked, 1) << "and nothing else waited";
  EXPECT_GT(shadow.state().worst_deviation, 0);
  shadow.engine_switched(true);
  EXPECT_EQ(shadow.state().worst_deviation, 0) << "nothing is known of the new engine";
  EXPECT_TRUE(shadow.state().rolled_back);
}

}  // namespace
}  // namespace toto::server
