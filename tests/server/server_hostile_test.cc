// A thousand clients that are slow, silent, endless or send garbage: honest clients are answered.
// TOTO_ATTACK_SECONDS makes the attack longer and also bounds how much it slows them down, as a
// ratio of one run on a quiet machine (bench/results/serving.md).
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>

#include "sanitized.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::walk;

constexpr std::size_t kMaxConnections = 1000;
constexpr int kHonest = 4;

// A crowd of rude clients, driven by one thread. It begins paused.
class Attack {
 public:
  // All of them connect before this returns.
  explicit Attack(int port) : port_(port) {
    for (std::size_t i = 0; i < kMaxConnections + 200; ++i) add(static_cast<Kind>(i % kLasting));
    thread_ = std::thread([this] { run(); });
  }
  ~Attack() {
    over_ = true;
    thread_.join();
  }
  Attack(const Attack&) = delete;
  Attack& operator=(const Attack&) = delete;
  void set_active(bool active) { active_ = active; }

 private:
  enum class Kind { slow_header, slow_body, never_reads, silent, huge_header, garbage };
  static constexpr std::size_t kLasting = 4, kKinds = 6;  // the last two are refused immediately
  struct Rude {
    Kind kind;
    Client client;
  };

  void add(Kind kind) {
    static const std::string kHuge =
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(256 << 10, 'x');
    static const std::string kPages = [] {
      std::string all;
      for (int i = 0; i < 10; ++i) all += request_text("GET", "/openapi.json");
      return all;
    }();
    crowd_.push_back({kind, Client(port_, Client::Sending::without_waiting)});
    const Client& client = crowd_.back().client;
    switch (kind) {
      case Kind::slow_header:
        client.send("GET /health HTTP/1.1\r\nX-Slow: ");
        break;
      case Kind::slow_body:
        client.send(
            "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000000\r\n\r\n[");
        break;
      case Kind::never_reads:
        client.send(kPages);
        break;
      case Kind::huge_header:
        client.send(kHuge);
        break;
      case Kind::garbage:
        client.send(request_text("GET", "/health") + std::string(4096, '\x07') + "\r\n\r\n");
        break;
      default:
        break;
    }
  }

  // Up to fifty new ones per second; the others send a byte every few seconds.
  void run() {
    for (std::size_t turn = 0; !over_; ++turn) {
      std::this_thread::sleep_for(milliseconds(20));
      if (!active_) continue;
      crowd_.pop_front();
      add(static_cast<Kind>(turn % kKinds));
      for (std::size_t i = turn % 200; i < crowd_.size(); i += 200) {
        const Rude& rude = crowd_[i];
        if (rude.kind == Kind::slow_header || rude.kind == Kind::slow_body) rude.client.send("1");
      }
    }
  }

  const int port_;
  std::deque<Rude> crowd_;
  std::atomic<bool> active_{false}, over_{false};
  std::thread thread_;
};

class Hostile : public ServerTest {
 protected:
  Hostile() { http_options_.max_connections = kMaxConnections; }

  void wait_for_crowd() const {
    EXPECT_TRUE(
        eventually([this] { return http_->num_connections() >= kMaxConnections * 9 / 10; }));
  }

  // Milliseconds that honest clients wait for their answers, half of them on new connections.
  static std::vector<double> honest(int port, double time) {
    const std::string request = request_text(
        "POST", "/v1/forecast",
        fmt::format(R"({{"series": [{{"values": {}}}], "horizon": 24, "samples": 16}})",
                    values_text(walk(1, 512).values)));
    std::mutex mutex;
    std::vector<double> all;
    std::vector<std::thread> threads;
    const auto until = Clock::now() + std::chrono::duration<double>(time);
    for (int t = 0; t < kHonest; ++t) {
      threads.emplace_back([&, t] {
        std::vector<double> mine;
        std::optional<Client> client;
        while (Clock::now() < until) {
          const auto begin = Clock::now();
          if (!client || t % 2 == 0) client.emplace(port);
          const bool sent = client->send(request);
          const Reply reply = client->receive();
          mine.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
          EXPECT_TRUE(sent && reply.status == 200) << reply.status << reply.body;
          if (reply.status != 200) break;
        }
        const std::lock_guard lock(mutex);
        all.insert(all.end(), mine.begin(), mine.end());
      });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
  }
  static double p99(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times.empty() ? 1e9 : times[static_cast<std::size_t>(0.99 * (times.size() - 1))];
  }

  // How many times as long honest clients wait during an attack on this service, at p99; each of
  // their requests must be answered. They ask at another port and at this one in turns, so that
  // other load on the machine affects both, and the attack pauses for the other port. Only with
  // TOTO_ATTACK_SECONDS is the ratio meaningful; 0 without.
  double slowdown(int quiet_port, const std::function<void(bool active)>& attack) const {
    const char* wanted = std::getenv("TOTO_ATTACK_SECONDS");
    const double window = wanted != nullptr ? std::atof(wanted) / 6 : 0.3;
    honest(quiet_port, 0.2);  // plans and caches
    double best = 1e9;
    const int attempts = wanted != nullptr ? 6 : 1;
    for (int attempt = 0; attempt < attempts && best > 2; ++attempt) {
      std::vector<double> quiet, attacked;
      for (int turn = 0; turn < 3; ++turn) {
        const std::vector<double> alone = honest(quiet_port, window);
        quiet.insert(quiet.end(), alone.begin(), alone.end());
        attack(true);
        const std::vector<double> among = honest(port_, window);
        attack(false);
        attacked.insert(attacked.end(), among.begin(), among.end());
      }
      best = std::min(best, p99(attacked) / p99(quiet));
      fmt::print("p99 of honest clients: {:.2f} ms alone ({} answers), {:.2f} ms attacked ({})\n",
                 p99(quiet), quiet.size(), p99(attacked), attacked.size());
    }
    return kSanitized || wanted == nullptr ? 0 : best;
  }
};

TEST_F(Hostile, CrowdsDoNotDelayHonestClients) {
  start();
  HttpServer other(http_options_, *service_);
  Attack attack(port_);
  wait_for_crowd();
  EXPECT_LE(slowdown(other.port(), [&](bool active) { attack.set_active(active); }), 2);
}

// Requests within every limit that keep an engine busy for seconds: many paths, a long context,
// many variates, many series. Their clients leave before they are answered.
TEST_F(Hostile, LongForecastsDoNotDelayHonestClients) {
  service_options_.model = "toto-mini";
  service_options_.load = [](Mode mode) {
    return Engine::load(std::string(TOTO_SOURCE_DIR) + "/models/toto-mini", {.mode = mode});
  };
  start();
  const std::string values = values_text(walk(2, 2000).values);
  const auto list = [](const std::string& item, int count) {
    std::string text = item;
    for (int i = 1; i < count; ++i) text += "," + item;
    return text;
  };
  const std::string series = fmt::format(R"({{"values": {}}})", values);
  std::vector<std::string> requests;
  for (const std::string& body :
       {fmt::format(R"({{"series": [{}], "horizon": 640, "samples": 20000}})", series),
        fmt::format(R"({{"series": [{{"values": {}}}], "horizon": 1, "context": 100000}})",
                    values_text(walk(3, 100'000).values)),
        fmt::format(R"({{"series": [{}], "horizon": 8, "multivariate": true}})", list(series, 100)),
        fmt::format(R"({{"series": [{}], "horizon": 90}})", list(series, 100))}) {
    requests.push_back(request_text("POST", "/v1/forecast", body));
  }
  std::vector<Client> greedy;
  const double times = slowdown(port_, [&](bool active) {
    greedy.clear();
    if (!active) {
      EXPECT_TRUE(eventually([this] { return service_->scheduler().depth() == 0; }));
      return;
    }
    for (const std::string& request : requests) {
      greedy.push_back(connect());
      greedy.back().send(request);
    }
    EXPECT_TRUE(eventually([&] { return service_->scheduler().depth() >= requests.size(); }));
  });
  EXPECT_LE(times, 2);
}

// Connections that send bodies or read answers as slowly as allowed can fill all places: they are
// evicted for new ones.
TEST_F(Hostile, SlowBodiesAndSlowReadersAreEvicted) {
  http_options_.max_connections = 20;
  start();
  std::string pages;
  for (int i = 0; i < 400; ++i) pages += request_text("GET", "/openapi.json");
  std::vector<Client> slow;
  for (int i = 0; i < 40; ++i) {
    slow.emplace_back(port_, Client::Sending::without_waiting);
    slow.back().send(i % 2 == 0 ? "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 1000\r\n\r\n["
                                : pages);
  }
  for (int i = 0; i < 30; ++i) EXPECT_EQ(get("/health").status, 200);
}

// An active client keeps its connection whatever other clients do.
TEST_F(Hostile, ActiveClientsAreNotEvicted) {
  http_options_.max_connections = 8;
  start();
  Client honest = connect();
  for (int i = 0; i < 50; ++i) {
    honest.send(request_text("GET", "/health"));
    ASSERT_EQ(honest.receive().status, 200) << i;
    const Client one = connect(), two = connect();
  }
}

// Answers immediately with more than a socket buffer holds; "/small" with five bytes.
class Generous : public HttpHandler {
 public:
  static constexpr std::size_t kLarge = std::size_t{12} << 20;
  std::optional<std::size_t> find_route(const HttpRequest&) const override { return std::nullopt; }
  std::optional<HttpResponse> admit(const HttpRequest&) override { return std::nullopt; }
  void handle(HttpRequest request, ClientGone, Respond respond) override {
    respond({.body = std::string(request.path == "/small" ? 5 : kLarge, ' ')});
  }
  void answered(const HttpRequest&, const HttpResponse&, bool sent) override { sent_all_ = sent; }
  std::atomic<bool> sent_all_{false};
};

// The sum of unread answers is limited; small ones always fit.
TEST(Answers, UnreadOnesAreLimitedInSum) {
  Generous handler;
  HttpServer http({.port = 0, .max_bodies = Generous::kLarge * 3 / 2}, handler);
  Client greedy(http.port());
  greedy.send(request_text("GET", "/"));
  ASSERT_TRUE(greedy.receives());
  Client second(http.port());
  second.send(request_text("GET", "/"));
  const Reply refused = second.receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.error().find("large answers"), std::string::npos);
  second.send(request_text("GET", "/small"));
  EXPECT_EQ(second.receive().status, 200);
  EXPECT_EQ(greedy.receive().body.size(), Generous::kLarge);
  second.send(request_text("GET", "/"));
  EXPECT_EQ(second.receive().status, 200);
}

// A client that pauses, or reads byte by byte, is dropped in the end.
TEST(Answers, AreNotOfferedForEver) {
  const milliseconds soon(300), never(600'000);
  for (const bool pauses : {true, false}) {
    Generous handler;
    HttpServer http(
        {.port = 0, .pause_timeout = pauses ? soon : never, .body_timeout = pauses ? never : soon},
        handler);
    Client silent(http.port());
    silent.send(request_text("GET", "/"));
    EXPECT_TRUE(silent.receives());
    EXPECT_TRUE(eventually([&] { return http.num_connections() == 0; })) << pauses;
    EXPECT_FALSE(handler.sent_all_);
  }
}

}  // namespace
}  // namespace toto::server
