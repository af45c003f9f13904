// Reading requests: large bodies, and small ones that become large, delay only each other, and the
// memory of all of them has one limit.
#include "base/process_memory.h"
#include "gzipped.h"
#include "sanitized.h"
#include "server/decompress.h"
#include "server/memory_budget.h"
#include "server/protocol_nixtla.h"
#include "server/workers.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

constexpr std::string_view kGzip = "Content-Encoding: gzip\r\n";
const std::string kSevenPoints = R"({"series": [{"values": [1, 2, 3, 4, 5, 6, 7]}], "horizon": 4})";

// Small when sent, 32 MB to read, and not JSON.
const std::string& bomb() {
  static const std::string bytes = gzipped(std::string(std::size_t{32} << 20, ' '));
  return bytes;
}

// 60 kB that become this many windows, each with a copy of the history before it.
std::string many_windows(int count) {
  std::string y = "1";
  for (int i = 1; i < 20'000; ++i) y += ",1";
  return fmt::format(
      R"({{"series": {{"y": [{}], "sizes": [20000]}}, "h": 1, "n_windows": {}, "step_size": 1}})",
      y, count);
}

class Reading : public ServerTest {
 protected:
  // Keeps the thread for large bodies busy with answering one, for as long as it lives.
  class BusyReader {
   public:
    explicit BusyReader(const Reading& test) {
      // It never is late itself.
      const auto received = Clock::now() + std::chrono::hours(1);
      const auto gone = std::make_shared<std::atomic<bool>>(false);
      const auto respond = [begun = begun_, go = go_.get_future().share()](const HttpResponse&) {
        begun->set_value();
        go.wait();
      };
      test.hand_over("/v1/forecast", std::string(std::size_t{2} << 20, ' '), respond, gone, {},
                     received);
      begun_->get_future().wait();
    }
    ~BusyReader() { go_.set_value(); }
    BusyReader(const BusyReader&) = delete;
    BusyReader& operator=(const BusyReader&) = delete;

   private:
    std::promise<void> go_;
    std::shared_ptr<std::promise<void>> begun_ = std::make_shared<std::promise<void>>();
  };

  // The answers to bombs that wait for the thread of large bodies.
  struct Answers {
    std::mutex mutex = {};
    std::vector<HttpResponse> all = {};
    bool are(std::size_t count, std::string_view fragment) {
      const std::lock_guard lock(mutex);
      for (const HttpResponse& answer : all) {
        EXPECT_EQ(answer.status, 503);
        EXPECT_NE(answer.body.find(fragment), std::string::npos) << answer.body;
      }
      return all.size() == count;
    }
  };
  void hand_over_bombs(int count, Answers& answers, const ClientGone& gone) const {
    for (int i = 0; i < count; ++i) {
      hand_over("/v1/forecast", bomb(),
                [&answers](HttpResponse answer) {
                  const std::lock_guard lock(answers.mutex);
                  answers.all.push_back(std::move(answer));
                },
                gone, {{"Content-Encoding", "gzip"}});
    }
  }
  // Bombs are first read by the threads for small bodies; a short request behind them shows that
  // all have been passed on.
  void wait_until_passed_on() const {
    for (int i = 0; i < 2; ++i) post("/v1/forecast", gzipped(kSevenPoints), kGzip);
  }

  const ClientGone stays_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(Reading, SmallBodiesDoNotWaitForLargeOnes) {
  start();
  const BusyReader busy(*this);
  Client large = connect();
  large.send(request_text("POST", "/v1/forecast", bomb(), kGzip));
  EXPECT_EQ(post("/v1/forecast", gzipped(kSevenPoints), kGzip).status, 200);
  EXPECT_FALSE(large.receives(milliseconds(0)));
}

TEST_F(Reading, BodiesOfClientsThatLeftAreNotRead) {
  start();
  Answers answers;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  {
    const BusyReader busy(*this);
    hand_over_bombs(12, answers, gone);
    wait_until_passed_on();
    gone->store(true);
  }
  EXPECT_TRUE(eventually([&] { return answers.are(12, "the client has left"); }));
}

TEST_F(Reading, StoppingEndsIt) {
  start();
  Answers answers;
  {
    const BusyReader busy(*this);
    hand_over_bombs(12, answers, stays_);
    wait_until_passed_on();
    service_->cancel_all();
  }
  EXPECT_TRUE(eventually([&] { return answers.are(12, "shutting down"); }));
}

TEST_F(Reading, ADeadlineEndsIt) {
  service_options_.deadline = milliseconds(300);
  start();
  Answers answers;
  const BusyReader busy(*this);
  hand_over_bombs(12, answers, stays_);
  EXPECT_TRUE(eventually([&] { return answers.are(12, "in time"); })) << "while the thread is busy";
}

TEST(ReadingWorkers, RunLateCallbacksWhileTheyAreBusy) {
  Workers workers(1, 2);
  std::promise<void> go;
  std::promise<void> told;
  std::atomic<bool> ran{false};
  workers.post([&] { go.get_future().wait(); });
  EXPECT_TRUE(workers.try_post([&] { ran = true; },
                               {Clock::now() + milliseconds(30), [&] { told.set_value(); }}));
  EXPECT_EQ(told.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(workers.try_post([&] {}, {}));
  go.set_value();
  workers.stop();
  EXPECT_FALSE(ran) << "its `late` has run instead";
  EXPECT_FALSE(workers.try_post([] {}, {}));
}

// `take` is also called for a long stream of empty blocks, which has no output.
TEST(ReadingBodies, CanBeAbandonedWithoutAnyOutput) {
  std::string empty("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  for (int i = 0; i < 100'000; ++i) empty.append("\0\0\0\xff\xff", 5);
  int asked = 0;
  EXPECT_FALSE(decompress(empty, "gzip", [&](std::size_t bytes) {
    EXPECT_EQ(bytes, 0u);
    return ++asked < 3;
  }));
  EXPECT_EQ(asked, 3);
}

TEST_F(Reading, TheBodyOfAModeMayBeCompressed) {
  service_options_.access.api_key = "k";
  start();
  const std::string headers = "Authorization: Bearer k\r\n" + std::string(kGzip);
  EXPECT_EQ(post("/v1/mode", gzipped(R"({"mode": "reference"})"), headers).status, 200);
  EXPECT_EQ(post("/v1/mode", bomb(), headers).status, 400);
}

TEST(ReadingSeries, AreNotBuiltOnAThreadForSmallerRequests) {
  const Json body = io::parse_json(many_windows(1000), "the request");
  RequestLimits limits;
  limits.max_series_bytes_here = std::size_t{1} << 20;
  const PreparedRequest prepared = prepare_nixtla_cross_validation(body, limits);
  EXPECT_TRUE(prepared.series.empty()) << "78 MB of series";
  EXPECT_NEAR(static_cast<double>(prepared.bytes_too_large_here), 1000 * 19'500 * 4.0, 1e6);
}

TEST_F(Reading, LargeSeriesAreBuiltOnTheThreadForLargeBodies) {
  start();
  const BusyEngine busy(service_->scheduler());
  {
    const BusyReader reader(*this);
    // It is parsed here and would be queued here if its series were built here.
    hand_over("/v2/cross_validation", many_windows(1000), [](const HttpResponse&) {});
    EXPECT_EQ(service_->scheduler().depth(), 1u);
    EXPECT_EQ(get("/health").status, 200);
  }
  EXPECT_TRUE(eventually([&] { return service_->scheduler().depth() == 2; }));
}

TEST_F(Reading, WaitingRequestsShareOneLimit) {
  http_options_.max_bodies = std::size_t{20} << 20;
  start();
  const std::string body = many_windows(150);  // 12 MB
  Client first = connect();
  {
    const BusyEngine busy(service_->scheduler());
    first.send(request_text("POST", "/v2/cross_validation", body));
    ASSERT_TRUE(eventually([&] { return service_->scheduler().depth() == 2; }));
    Reply refused = post("/v2/cross_validation", body);
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.headers["retry-after"], "1");
    EXPECT_NE(refused.error().find("no room for 12 MB"), std::string::npos) << refused.body;
    // Small requests still fit.
    Client small = connect();
    small.send(request_text("POST", "/v1/forecast", kSevenPoints));
    EXPECT_TRUE(eventually([&] { return service_->scheduler().depth() == 3; }));
  }
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(post("/v2/cross_validation", body).status, 200);
}

// The scheduler's queue is emptied after the HTTP server is gone.
TEST(Budget, IsKeptByRequestsThatOutliveTheServer) {
  auto budget = std::make_shared<MemoryBudget>(100);
  const std::weak_ptr<MemoryBudget> still_there = budget;
  {
    MemoryShare share(budget);
    budget.reset();
    ASSERT_FALSE(still_there.expired());
    EXPECT_TRUE(share.take(100));
    EXPECT_FALSE(share.take(1));
  }
  EXPECT_TRUE(still_there.expired());
}

TEST_F(Reading, MemoryIsReturnedToTheSystem) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  service_options_.deadline = milliseconds(1500);
  start();
  ASSERT_TRUE(eventually([&] { return post("/v1/forecast", kSevenPoints).status == 200; }));
  const double before = static_cast<double>(toto::resident_bytes().value_or(0));
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(port_);
    clients.back().send(request_text("POST", "/v2/cross_validation", many_windows(2500)));
  }
  for (Client& client : clients) EXPECT_GE(client.receive().status, 200);
  const auto grown = [&] {
    return (static_cast<double>(toto::resident_bytes().value_or(0)) - before) / 1e6;
  };
  EXPECT_TRUE(eventually([&] { return grown() < 100; })) << grown() << " MB of 800 are still there";
}

}  // namespace
}  // namespace toto::server
