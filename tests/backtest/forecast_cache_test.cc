// The file of kept forecasts: no other user can change, redirect or stop a run through it.
#include "backtest/forecast_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "io_fixture.h"

namespace toto::backtest {
namespace {

class ForecastCacheTest : public ::testing::Test {
 protected:
  static constexpr std::array<std::pair<ContextKey, RawForecast>, 1> kEntries = {
      {{{1, 2}, {3.0f}}}};

  void SetUp() override {
    ForecastCache(folder_.path(), "setting").add(kEntries);
    path_ = std::filesystem::directory_iterator(folder_ / "forecasts")->path().string();
    good_ = io::contents_of(path_);
  }
  // `change` makes the file one that may not be used. The run warns, computes, and replaces it.
  void expect_replaced(std::string_view reason, const std::function<void()>& change) {
    change();
    ForecastCache cache(folder_.path(), "setting");
    EXPECT_EQ(cache.find({1, 2}), nullptr) << reason;
    ASSERT_EQ(cache.warnings().size(), 1u) << reason;
    EXPECT_NE(cache.warnings()[0].find(reason), std::string::npos) << cache.warnings()[0];
    cache.add(kEntries);
    EXPECT_EQ(cache.warnings().size(), 1u) << cache.warnings().back();
    EXPECT_NE(ForecastCache(folder_.path(), "setting").find({1, 2}), nullptr) << reason;
    EXPECT_EQ(io::contents_of(path_), good_) << reason;
  }

  io::TemporaryFolder folder_;
  std::string path_, good_;
};

TEST_F(ForecastCacheTest, FilesArePrivateAndOlderOnesServe) {
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0600));
  fs::permissions(path_, fs::perms(0644));
  ForecastCache cache(folder_.path(), "setting");
  EXPECT_NE(cache.find({1, 2}), nullptr);
  EXPECT_TRUE(cache.warnings().empty());
}

TEST_F(ForecastCacheTest, ReplacesWhatAnotherUserCouldHaveWritten) {
  namespace fs = std::filesystem;
  const std::string behind = folder_ / "behind";
  const auto in_place = [&](const std::function<void()>& make) {
    return [this, make] {
      fs::remove_all(path_);
      make();
    };
  };
  io::put(behind, good_);
  expect_replaced("symbolic link", in_place([&] { fs::create_symlink(behind, path_); }));
  EXPECT_EQ(io::contents_of(behind), good_) << "not written through the link";
  expect_replaced("2 names", in_place([&] { fs::create_hard_link(behind, path_); }));
  EXPECT_EQ(io::contents_of(behind), good_) << "not emptied through the other name";
  expect_replaced("a FIFO", in_place([&] { ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0); }));
  expect_replaced("a folder", in_place([&] { fs::create_directory(path_); }));
  expect_replaced("may write it (mode 0666)", [&] { fs::permissions(path_, fs::perms(0666)); });
  expect_replaced("may write it (mode 0620)", [&] { fs::permissions(path_, fs::perms(0620)); });
  if (geteuid() == 0) {
    expect_replaced("another user", [&] { ASSERT_EQ(chown(path_.c_str(), 12345, 0), 0); });
  }
}

TEST_F(ForecastCacheTest, DoesNotFollowALinkedSubfolder) {
  namespace fs = std::filesystem;
  fs::rename(folder_ / "forecasts", folder_ / "behind");
  fs::create_directory_symlink(folder_ / "behind", folder_ / "forecasts");
  ForecastCache cache(folder_.path(), "setting");
  EXPECT_EQ(cache.find({1, 2}), nullptr);
  const std::array<std::pair<ContextKey, RawForecast>, 1> more = {{{{4, 5}, {6.0f}}}};
  cache.add(more);
  EXPECT_EQ(cache.warnings().size(), 2u);
  EXPECT_EQ(io::contents_of(folder_ / "behind/" + fs::path(path_).filename().string()), good_);
}

// A process that may read the file can hold its lock: forecasts are then not kept, and nothing
// waits.
TEST_F(ForecastCacheTest, AHeldLockDoesNotStopARun) {
  const int fd = open(path_.c_str(), O_RDONLY);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  ForecastCache cache(folder_.path(), "setting");
  EXPECT_NE(cache.find({1, 2}), nullptr);
  const std::array<std::pair<ContextKey, RawForecast>, 1> more = {{{{4, 5}, {6.0f}}}};
  cache.add(more);
  ASSERT_EQ(cache.warnings().size(), 1u);
  EXPECT_NE(cache.warnings()[0].find("holds its lock"), std::string::npos) << cache.warnings()[0];
  close(fd);
  EXPECT_EQ(io::contents_of(path_), good_);
}

// A record of another setting's file is not taken for one of this setting, even with its header.
TEST_F(ForecastCacheTest, ARecordBelongsToItsSetting) {
  ForecastCache(folder_.path(), "other").add(kEntries);
  std::string other;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "forecasts")) {
    if (file.path() != path_) other = io::contents_of(file.path().string());
  }
  constexpr std::size_t kHeader = 8 + 64;
  io::put(path_, good_.substr(0, kHeader) + other.substr(kHeader));
  EXPECT_EQ(ForecastCache(folder_.path(), "setting").find({1, 2}), nullptr);
}

}  // namespace
}  // namespace toto::backtest
