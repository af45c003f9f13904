// Who waits for whom while requests are read: large bodies, and small ones that become large, hold
// up only each other, and what all of them take has one limit.
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

using std::chrono::seconds;

constexpr std::string_view kGzip = "Content-Encoding: gzip\r\n";
const std::string kForecast = R"({"series": [{"values": [1, 2, 3, 4, 5, 6, 7]}], "horizon": 4})";

// Small on the wire, some tenths of a second to read, and no JSON in the end.
const std::string& bomb() {
  static const std::string bytes = gzipped(std::string(std::size_t{32} << 20, ' '));
  return bytes;
}

// 60 kB that become this many windows, each with a copy of what was before it.
std::string many_windows(int count) {
  std::string y = "1";
  for (int i = 1; i < 20'000; ++i) y += ",1";
  return fmt::format(
      R"({{"series": {{"y": [{}], "sizes": [20000]}}, "h": 1, "n_windows": {}, "step_size": 1}})",
      y, count);
}

class Reading : public ServerTest {
 protected:
  std::vector<Client> send_bombs(int count) const {
    std::vector<Client> clients;
    for (int i = 0; i < count; ++i) {
      clients.emplace_back(port_);
      clients.back().send(request_text("POST", "/v1/forecast", bomb(), kGzip));
    }
    return clients;
  }
};

TEST_F(Reading, SmallBodiesDoNotWaitForLargeOnes) {
  start();
  std::vector<Client> large = send_bombs(12);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(post("/v1/forecast", gzipped(kForecast), kGzip).status, 200);
  EXPECT_FALSE(large.back().receives(milliseconds(0))) << "the large ones are still being read";
}

TEST_F(Reading, BodiesOfClientsThatLeftAreNotRead) {
  start();
  const auto timed = [&] {
    const auto begin = Clock::now();
    EXPECT_EQ(post("/v1/forecast", bomb(), kGzip).status, 400);
    return Clock::now() - begin;
  };
  const auto alone = timed();
  send_bombs(40);  // and away
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LT(timed(), 12 * alone) << "not forty times";
}

TEST_F(Reading, StoppingEndsIt) {
  start();
  std::vector<Client> clients = send_bombs(12);
  std::this_thread::sleep_for(milliseconds(100));
  service_->cancel_all();
  int refused = 0;
  for (Client& client : clients) refused += client.receive().status == 503 ? 1 : 0;
  EXPECT_GE(refused, 8);
}

TEST_F(Reading, ADeadlineEndsIt) {
  service_options_.deadline = milliseconds(300);
  start();
  std::vector<Client> clients = send_bombs(12);
  int late = 0;
  for (Client& client : clients) {
    const Reply reply = client.receive();
    late += reply.status == 503 && reply.error().find("in time") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(late, 8);
}

TEST(ReadingWorkers, TellWhoWaitsInTimeWhateverTheyAreBusyWith) {
  Workers workers(1, 2);
  std::promise<void> go;
  std::promise<void> told;
  std::atomic<bool> ran{false};
  workers.post([&] { go.get_future().wait(); });
  EXPECT_TRUE(workers.try_post([&] { ran = true; },
                               {Clock::now() + milliseconds(30), [&] { told.set_value(); }}));
  EXPECT_EQ(told.get_future().wait_for(seconds(20)), std::future_status::ready);
  EXPECT_TRUE(workers.try_post([&] {}, {}));
  go.set_value();
  workers.stop();
  EXPECT_FALSE(ran) << "somebody was told that it did not";
  EXPECT_FALSE(workers.try_post([] {}, {}));
}

// A stream of empty blocks makes nothing for long: it is asked about all the same.
TEST(ReadingBodies, CanBeGivenUpWithoutAnyOutput) {
  std::string empty("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  for (int i = 0; i < 100'000; ++i) empty.append("\0\0\0\xff\xff", 5);
  int asked = 0;
  EXPECT_THROW(decompress(empty, "gzip", 1 << 20,
                          [&](std::size_t bytes) {
                            EXPECT_EQ(bytes, 0u);
                            return ++asked < 3;
                          }),
               Error);
  EXPECT_EQ(asked, 3);
}

TEST_F(Reading, TheModeMayBeCompressedToo) {
  service_options_.access.api_key = "k";
  start();
  const std::string headers = "Authorization: Bearer k\r\n" + std::string(kGzip);
  EXPECT_EQ(post("/v1/mode", gzipped(R"({"mode": "reference"})"), headers).status, 200);
  EXPECT_EQ(post("/v1/mode", bomb(), headers).status, 400);
}

TEST(ReadingPlans, AreMadeWhereTheyHoldUpNobody) {
  const Json body = io::parse_json(many_windows(1000), "the request");
  Limits limits;
  limits.max_here = std::size_t{1} << 20;
  try {
    plan_nixtla_cross_validation(body, limits);
    FAIL() << "78 MB of series";
  } catch (const TooLargeHere& plan) {
    EXPECT_NEAR(static_cast<double>(plan.bytes), 1000 * 19'500 * 4.0, 1e6);
  }
}

TEST_F(Reading, LargePlansWaitForTheThreadOfLargeBodies) {
  start();
  const BusyEngine busy(service_->scheduler());
  ASSERT_TRUE(soon([&] { return service_->scheduler().depth() == 1; }));
  const std::vector<Client> large = send_bombs(6);
  ASSERT_TRUE(large.front().receives(seconds(100)));  // by then the others wait behind it
  Client client = connect();
  client.send(request_text("POST", "/v2/cross_validation", many_windows(1000)));
  EXPECT_EQ(get("/health").status, 200);
  while (service_->scheduler().depth() < 2 && !client.receives(milliseconds(5))) {
  }
  EXPECT_EQ(service_->scheduler().depth(), 2u) << "it was refused";
  EXPECT_TRUE(large.back().receives(milliseconds(200))) << "it came after them";
}

TEST_F(Reading, WhatWaitsHasOneLimit) {
  http_options_.max_bodies = std::size_t{20} << 20;
  start();
  const std::string body = many_windows(150);  // 12 MB
  Client first = connect();
  {
    const BusyEngine busy(service_->scheduler());
    first.send(request_text("POST", "/v2/cross_validation", body));
    ASSERT_TRUE(soon([&] { return service_->scheduler().depth() == 2; }));
    Reply refused = post("/v2/cross_validation", body);
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.headers["retry-after"], "1");
    EXPECT_NE(refused.error().find("no room for 12 MB"), std::string::npos) << refused.body;
    // Others are not: small ones fit.
    Client small = connect();
    small.send(request_text("POST", "/v1/forecast", kForecast));
    EXPECT_TRUE(soon([&] { return service_->scheduler().depth() == 3; }));
  }
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(post("/v2/cross_validation", body).status, 200);
}

TEST_F(Reading, MemoryIsGivenBack) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep what was freed";
  service_options_.deadline = milliseconds(1500);
  start();
  EXPECT_EQ(post("/v1/forecast", kForecast).status, 200);
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
  EXPECT_TRUE(soon([&] { return grown() < 100; })) << grown() << " MB of 800 are still there";
}

}  // namespace
}  // namespace toto::server
