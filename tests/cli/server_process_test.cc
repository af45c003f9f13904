// `toto serve` under load, with kill -9, SIGTERM and a full disk. Every answer that a client
// receives is compared to the bit with the engine's own.
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>

#include "sanitized.h"
#include "serve_fixture.h"
#include "server_fixture.h"

namespace toto::cli {
namespace {

using server::Client;
using server::Clock;
using server::Reply;
using server::request_text;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::eventually;

constexpr seconds kDrain{7};  // accepted work has as long after SIGTERM
constexpr seconds kHang{60};  // a stop takes 10 seconds at most on a machine that is not busy

struct Question {
  std::string request;
  std::vector<float> mean;  // of the answer
};

class ServeProcess : public ServeTest {
 protected:
  static std::vector<Question> questions() {
    const Engine engine = Engine::load(std::string(TOTO_SOURCE_DIR) + "/models/toto-mini");
    std::vector<Question> all;
    for (unsigned i = 0; i < 8; ++i) {
      const Series series = testing::walk(i, 100 + 10 * static_cast<int>(i));
      io::JsonWriter body(io::JsonLayout::compact);
      body.begin_object().field("horizon", 12).key("series").begin_array().begin_object();
      body.key("values").begin_array();
      for (const float value : series.values) body.value(value);
      body.end_array().end_object().end_array().end_object();
      all.push_back({.request = request_text("POST", "/v1/forecast", body.take()),
                     .mean = engine.forecast(series, {.horizon = 12}).mean});
    }
    return all;
  }

  static bool is_right(const Reply& reply, const Question& question) {
    const io::Json answer = io::parse_json(reply.body, "the answer");
    const std::vector<io::Json>& mean = at(at(answer, "series").array.at(0), "mean").array;
    return std::equal(mean.begin(), mean.end(), question.mean.begin(), question.mean.end(),
                      [](const io::Json& a, float b) { return static_cast<float>(a.real) == b; });
  }

  // Every line is a whole one.
  static std::size_t count_log_lines(const std::string& text) {
    EXPECT_TRUE(text.empty() || text.ends_with('\n')) << text.substr(text.rfind('\n') + 1);
    std::size_t count = 0;
    for (std::size_t at_line = 0; at_line < text.size(); ++count) {
      const std::size_t end = std::min(text.find('\n', at_line), text.size());
      const std::string line = text.substr(at_line, end - at_line);
      EXPECT_NO_THROW(at(io::parse_json(line, "log"), "status")) << line;
      at_line = end + 1;
    }
    return count;
  }

  std::string metric(std::string_view name) const {
    Client client(port());
    client.send(request_text("GET", "/metrics"));
    const std::string text = client.receive().body;
    const std::size_t line = text.find("\n" + std::string(name) + " ");
    EXPECT_NE(line, text.npos) << name;
    const std::size_t value = line + name.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }

  // A line is written after its answer was sent, perhaps after the client received it.
  bool loses_lines(int count) const {
    return eventually([&] { return std::stoi(metric("toto_log_lines_lost_total")) >= count; });
  }

  // Answers to clients in a closed loop. A client without an answer connects again.
  struct Seen {
    std::atomic<int> right{0}, wrong{0}, refused{0};
    std::atomic<int> cut{0};   // an answer that began and did not end
    std::atomic<int> lost{0};  // no answer on a connection that had seen one before
  };
  // Runs `work` meanwhile.
  static void under_load(const std::function<int()>& find_port, Seen& seen,
                         const std::function<void()>& work) {
    const std::vector<Question> all = questions();
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 12; ++t) {
      threads.emplace_back([&, t] {
        std::size_t next = t;
        while (!over) {
          Client client(find_port());
          if (!client.connected()) {
            std::this_thread::sleep_for(milliseconds(5));
            continue;
          }
          for (bool fresh = true, alive = true; alive && !over; fresh = false) {
            const Question& question = all[next++ % all.size()];
            const bool sent = client.send(question.request);
            const Reply reply = sent ? client.receive() : Reply();
            if (reply.status == 0) {
              if (client.has_partial_answer()) ++seen.cut;
              if (!fresh) ++seen.lost;
              break;
            }
            if (reply.status == 200) {
              (is_right(reply, question) ? seen.right : seen.wrong)++;
            } else {
              (reply.status == 503 ? seen.refused : seen.wrong)++;
            }
            const auto connection = reply.headers.find("connection");
            alive = connection == reply.headers.end() || connection->second != "close";
          }
        }
      });
    }
    work();
    over = true;
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(ServeProcess, KillNineUnderLoadAndStartAgain) {
  serve({"--port", "0", "--log", path("log")});
  const int first = port();
  Seen seen;
  under_load([first] { return first; }, seen,
             [&] {
               for (int round = 0; round < 3; ++round) {
                 const int before = seen.right;
                 EXPECT_TRUE(eventually([&] { return seen.right >= before + 50; }))
                     << "clients are served again";
                 stop(SIGKILL);
                 // Killed while it loads, too: at any moment of that.
                 running_.emplace(start({"serve", "--port", std::to_string(first)}));
                 std::this_thread::sleep_for(milliseconds(15 * round));
                 stop(SIGKILL);
                 serve({"--port", std::to_string(first), "--log", path("log")});
                 ASSERT_EQ(port(), first) << "the port is free immediately";
               }
             });
  EXPECT_EQ(seen.wrong, 0);
  EXPECT_EQ(metric("toto_log_lines_lost_total"), "0");
  const Result result = stop();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(has(result.err, "warning")) << "the cache is sound: " << result.err;
  EXPECT_GT(count_log_lines(contents_of(path("log"))), 150u);
}

TEST_F(ServeProcess, SigtermDrainsUnderLoad) {
  serve({"--port", "0"});
  const int at_port = port();
  Seen seen;
  Result result;
  Clock::duration took{};
  Reply slow;
  under_load([at_port] { return at_port; }, seen,
             [&] {
               // A longer piece of work that was accepted before, too.
               Client client(at_port);
               client.send(request_text(
                   "POST", "/v1/forecast",
                   R"({"series": [{"values": [1, 2, 3]}], "horizon": 2000, "samples": 64})"));
               EXPECT_TRUE(eventually([&] { return seen.right >= 30; }));
               std::thread reader([&] { slow = client.receive(); });
               const auto begin = Clock::now();
               result = stop();
               took = Clock::now() - begin;
               reader.join();
             });
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(took, kHang);
  // On a machine too busy to end it within the 7 seconds of a stop it is refused instead.
  const bool refused = took >= kDrain && slow.status == 503;
  EXPECT_TRUE(slow.status == 200 || refused) << slow.status << slow.body;
  EXPECT_EQ(seen.wrong, 0);
  EXPECT_EQ(seen.cut, 0);
  EXPECT_EQ(seen.lost, 0);
  EXPECT_FALSE(Client(at_port).connected()) << "later ones are refused";
}

// The stop does not wait for a comparison in reference mode, at the lowest priority, of a wide
// series.
TEST_F(ServeProcess, StopsInTheMiddleOfAComparison) {
  serve({"--port", "0", "--shadow-rate", "1", "--threads", "1"});
  std::string values = "[";
  for (int i = 0; i < 1000; ++i) values += fmt::format("{}{}", i > 0 ? "," : "", i * 37 % 101);
  values += "]";
  std::string body = R"({"multivariate": true, "horizon": 64, "series": [)";
  for (int i = 0; i < 8; ++i) body += (i > 0 ? R"(,{"values": )" : R"({"values": )") + values + "}";
  Client client(port());
  client.send(request_text("POST", "/v1/forecast", body + "]}"));
  ASSERT_EQ(client.receive().status, 200);
  client.close();
  const auto begin = Clock::now();
  EXPECT_EQ(stop().exit_code, 0);
  EXPECT_LT(Clock::now() - begin, kHang);
}

// Loading a model cannot be interrupted, and may take long. A thread held by a debugger simulates
// it: that of the comparisons, the one with the lowest priority.
TEST_F(ServeProcess, StopsAlthoughAThreadCannotBeInterrupted) {
  serve({"--port", "0", "--shadow-rate", "1"});
  pid_t held = 0;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", running_->pid()))) {
    const pid_t thread = std::stoi(task.path().filename().string());
    if (getpriority(PRIO_PROCESS, static_cast<id_t>(thread)) == 19) held = thread;
  }
  ASSERT_NE(held, 0);
  if (ptrace(PTRACE_SEIZE, held, nullptr, nullptr) != 0) {
    GTEST_SKIP() << "threads cannot be held on this machine: " << std::strerror(errno);
  }
  int status = 0;
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, held, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(held, &status, __WALL), held);
  Client client(port());
  client.send(request_text("POST", "/v1/forecast", kForecast));
  EXPECT_EQ(client.receive().status, 200);
  const auto begin = Clock::now();
  kill(running_->pid(), SIGTERM);
  // The debugger is told of the thread's end first; the process ends after that.
  while (waitpid(held, &status, __WALL | WNOHANG) == 0) {
    std::this_thread::sleep_for(milliseconds(10));
    if (Clock::now() - begin > kHang) kill(running_->pid(), SIGKILL);
  }
  EXPECT_LT(Clock::now() - begin, kHang);
  const Result result = stop(SIGKILL);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "is abandoned")) << result.err;
}

// The system may allow fewer file descriptors than connections: idle connections are closed.
TEST_F(ServeProcess, IdleConnectionsAreClosedWhenDescriptorsRunOut) {
  if (kSanitized) GTEST_SKIP() << "to look at an object the sanitizer opens a pipe";
  serve({"--port", "0"});
  const auto open_files = [&] {
    return std::distance(
        std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", running_->pid())), {});
  };
  const rlim_t most = static_cast<rlim_t>(open_files()) + 8;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ASSERT_EQ(prlimit(running_->pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  std::vector<Client> idle;
  for (int i = 0; i < 30; ++i) idle.emplace_back(port());
  for (int i = 0; i < 3; ++i) {
    Client client(port());
    client.send(request_text("GET", "/health"));
    EXPECT_EQ(client.receive().status, 200) << i;
  }
  EXPECT_EQ(stop().exit_code, 0);
}

TEST_F(ServeProcess, AFullDiskUnderTheLogStopsNothing) {
  serve({"--port", "0", "--log", "/dev/full"});
  Client client(port());
  for (int i = 0; i < 3; ++i) {
    client.send(request_text("POST", "/v1/forecast", kForecast));
    EXPECT_EQ(client.receive().status, 200);
  }
  EXPECT_TRUE(loses_lines(3));
  EXPECT_EQ(stop().exit_code, 0);
}

TEST_F(ServeProcess, ALogThatMayGrowNoFurtherEndsWithAWholeLine) {
  serve({"--port", "0", "--log", path("log")});
  const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
  ASSERT_EQ(prlimit(running_->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  for (int i = 0; i < 20; ++i) {
    Client client(port());
    client.send(request_text("GET", "/health"));
    EXPECT_EQ(client.receive().status, 200);
  }
  EXPECT_TRUE(loses_lines(5));
  EXPECT_EQ(stop().exit_code, 0);
  const std::size_t lines = count_log_lines(contents_of(path("log")));
  EXPECT_GT(lines, 2u);
  EXPECT_LT(lines, 15u);
}

// As logrotate does it.
TEST_F(ServeProcess, OpensItsLogAgainWhenTold) {
  serve({"--port", "0", "--log", path("log")});
  const auto ask = [&] {
    Client client(port());
    client.send(request_text("GET", "/health"));
    return client.receive().status;
  };
  const auto logged = [&] { return count_log_lines(contents_of(path("log"))); };
  EXPECT_EQ(ask(), 200);
  EXPECT_TRUE(eventually([&] { return logged() > 0; }));
  std::filesystem::rename(path("log"), path("log.1"));
  kill(running_->pid(), SIGHUP);
  EXPECT_TRUE(eventually([this] { return has(running_->err_so_far(), "opened again"); }));
  EXPECT_EQ(ask(), 200);
  EXPECT_EQ(stop().exit_code, 0);
  EXPECT_GE(count_log_lines(contents_of(path("log.1"))), 1u);
  EXPECT_EQ(logged(), 1u);
}

TEST_F(ServeProcess, AnUnreadLogDoesNotDelayAnswers) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  serve({"--port", "0", "--log", path("pipe")});
  Client client(port());
  for (int i = 0; i < 1000; ++i) {
    client.send(request_text("GET", "/health"));
    ASSERT_EQ(client.receive().status, 200);
  }
  EXPECT_TRUE(loses_lines(100));
  close(reader);
  EXPECT_EQ(stop().exit_code, 0);
}

// Events are written by the threads that answer, also by an engine thread.
TEST_F(ServeProcess, AnUnreadStderrDoesNotDelayAnswers) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::vector<std::string> words = {command_,    "serve", "--port", "0",
                                    "--api-key", "k",     "--log",  "-"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string home = "HOME=" + folder_.path();
  const std::vector<char*> variables = {home.data(), nullptr};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execve(argv[0], argv.data(), variables.data());
    _exit(127);
  }
  std::string said;
  for (char byte = 0; !has(said, "ready: ") && read(ends[0], &byte, 1) == 1;) said += byte;
  port_ = said.substr(said.find("127.0.0.1:") + 10);
  port_.resize(port_.find('\n'));
  fcntl(ends[1], F_SETFL, O_NONBLOCK);  // of both processes: their one description
  while (write(ends[1], said.data(), said.size()) > 0) {
  }
  fcntl(ends[1], F_SETFL, 0);
  const std::string key = "Authorization: Bearer k\r\n";
  Client client(port());
  for (const auto& [path, body] :
       {std::pair("/v1/mode", R"({"mode": "reference"})"), std::pair("/v1/forecast", kForecast),
        std::pair("/v1/mode", R"({"mode": "default"})"), std::pair("/v1/forecast", kForecast)}) {
    client.send(request_text("POST", path, body, key));
    EXPECT_EQ(client.receive().status, 200) << path;
  }
  const auto lost = [&] {
    client.send(request_text("GET", "/metrics", {}, key));
    const std::string text = client.receive().body;
    const std::string name = "\ntoto_log_lines_lost_total ";
    return text.empty() ? -1 : std::stoi(text.substr(text.find(name) + name.size()));
  };
  EXPECT_GE(lost(), 2) << "events too are counted";
  client.close();
  const auto begin = Clock::now();
  kill(pid, SIGTERM);
  int status = -1;
  while (waitpid(pid, &status, WNOHANG) == 0 && Clock::now() - begin < kHang) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (status == -1) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace toto::cli
