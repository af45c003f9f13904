// `toto serve` as a separate process, on a free port, until the test ends.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "cli_fixture.h"

namespace toto::cli {

class ServeTest : public CliTest {
 protected:
  // Runs the service until `stop`, or the end of the test.
  void serve(std::vector<std::string> arguments, const Environment& environment = {}) {
    arguments.insert(arguments.begin(), "serve");
    running_.emplace(start(arguments, environment));
    std::string said;
    ASSERT_TRUE(testing::eventually([&] {
      said = running_->err_so_far();
      return has(said, "ready: ");
    })) << said;
    port_ = said.substr(said.find("127.0.0.1:") + 10);
    port_.resize(port_.find('\n'));
  }
  Result stop(int signal = SIGTERM) {
    kill(running_->pid(), signal);
    const Result result = running_->wait();
    running_.reset();
    return result;
  }
  int port() const { return std::stoi(port_); }
  void TearDown() override {
    if (running_) stop(SIGKILL);
  }

  static constexpr const char* kForecast =
      R"({"series": [{"values": [1, 2, 3, 4, 5, 6, 7, 8]}], "horizon": 3})";
  std::optional<Running> running_;
  std::string port_;
};

}  // namespace toto::cli
