// Result files that belong together: all new or all old. The wait for
// the reader of a pipe ends with one signal.
#include <sys/stat.h>

#include <csignal>
#include <map>
#include <thread>

#include "cli_fixture.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

class FileSetsTest : public CliTest {
 protected:
  void SetUp() override {
    std::string rows = "timestamp,open,high,low,close\n";
    double close = 100;
    for (int i = 0; i < 90; ++i) {
      const double open = close;
      close *= 1 + 0.01 * ((i * 7919) % 13 - 6) / 6;
      rows += fmt::format("2024-{:02}-{:02},{},{},{},{}\n", 1 + i / 28, 1 + i % 28, open,
                          std::max(open, close) * 1.01, std::min(open, close) * 0.99, close);
    }
    file("AAA.csv", rows);
  }
  std::map<std::string, std::string> contents_in(const std::string& folder) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path(folder))) {
      all[entry.path().filename().string()] = contents_of(entry.path().string());
    }
    return all;
  }
  // User and system time in ticks, and whether the process waits for something.
  static std::pair<std::string, bool> work_of(pid_t pid) {
    std::istringstream words(contents_of(fmt::format("/proc/{}/stat", pid)));
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    return {all.at(13) + " " + all.at(14), all.at(2) == "S"};
  }
};

// The report does not fit on the disk, the CSV files would.
TEST_F(FileSetsTest, ABacktestOnAFullDiskLeavesTheOldFiles) {
  const std::string command = "toto backtest AAA.csv --no-cache --no-lag-test --output-dir out ";
  ASSERT_EQ(shell(command + "--windows 6").exit_code, 0);
  const auto before = contents_in("out");
  ASSERT_EQ(before.size(), 5u);
  ASSERT_GT(before.at("report.html").size(), 3 * before.at("forecasts.csv").size());
  const Result full = shell("ulimit -f 16; " + command + "--windows 7");
  EXPECT_EQ(full.exit_code, 4) << full.err;
  EXPECT_TRUE(has(full.err, "report.html: cannot write")) << full.err;
  EXPECT_EQ(contents_in("out"), before) << "all old, and no temporary file";
  ASSERT_EQ(shell(command + "--windows 7").exit_code, 0);
  EXPECT_NE(contents_in("out").at("forecasts.csv"), before.at("forecasts.csv"));
}

// The page would fit; the JSON, written after it, does not.
TEST_F(FileSetsTest, AnEvaluationOnAFullDiskLeavesTheOldFiles) {
  const std::string command =
      "toto eval AAA.csv --columns close --no-cache --horizon 4 --report out/a.html ";
  ASSERT_EQ(shell(command + "--json out/b.json --windows 2").exit_code, 0);
  const auto before = contents_in("out");
  ASSERT_EQ(before.size(), 2u);
  const Result full = shell(command + "--json /dev/full --windows 3");
  EXPECT_EQ(full.exit_code, 4) << full.err;
  EXPECT_EQ(contents_in("out"), before);
}

TEST_F(FileSetsTest, OneSignalEndsTheWaitForAReader) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const Running running = start({"backtest", "AAA.csv", "--windows", "4", "--no-lag-test",
                                 "--no-cache", "--json", "pipe", "--output-dir", "out"});
  // It waits for the reader once it sleeps and has done no work in many looks.
  std::string before;
  for (int still = 0; still < 30;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto [work, sleeps] = work_of(running.pid());
    still = sleeps && work == before ? still + 1 : 0;
    before = work;
  }
  kill(running.pid(), SIGTERM);
  const Result result = running.wait();
  EXPECT_TRUE(has(result.err, "interrupted")) << result.err;
  EXPECT_FALSE(fs::exists(path("out/results.json")));
}

}  // namespace
}  // namespace toto::cli
