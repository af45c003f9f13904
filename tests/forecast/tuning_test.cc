// Mode max-autotune: schedules are measured once, kept, checked, and never change a bit.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cache/text_entry.h"
#include "io/sha256.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::made_model;
using testing::TemporaryFolder;
using testing::text_of;
using testing::walk;

class TuningTest : public ::testing::Test {
 protected:
  Engine load(Mode mode = Mode::max_autotune, DType dtype = DType::f32) {
    EngineOptions options;
    options.mode = mode;
    options.dtype = dtype;
    options.threads = 2;
    options.cache.folder = cache_;
    options.on_plan = [this](std::string_view line) { log_.emplace_back(line); };
    return Engine::load(model_, options);
  }
  // The only file of schedules.
  std::string schedule_file() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(cache_ + "/schedules")) {
      found.push_back(entry.path());
    }
    EXPECT_EQ(found.size(), 1u);
    return found.at(0);
  }
  bool logged(std::string_view text) const {
    for (const std::string& line : log_) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }

  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
  std::string cache_ = folder_ / "cache";
  std::vector<std::string> log_;
};

TEST_F(TuningTest, GivesTheSameBitsInEveryPrecision) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::int8}) {
    const Engine plain = load(Mode::standard, dtype), tuned = load(Mode::max_autotune, dtype);
    for (const int length : {5, 100, 400}) {
      for (const int variates : {1, 3}) {
        ForecastOptions options;
        options.horizon = 40;
        options.num_samples = 33;
        const std::vector<Series> batch = {walk(1, length, variates), walk(2, 77)};
        const std::vector<Forecast> a = plain.forecast(batch, options);
        const std::vector<Forecast> b = tuned.forecast(batch, options);
        for (std::size_t i = 0; i < a.size(); ++i) {
          ASSERT_EQ(a[i].mean, b[i].mean);
          ASSERT_EQ(a[i].quantiles, b[i].quantiles);
          ASSERT_EQ(a[i].samples, b[i].samples);
        }
      }
    }
  }
}

TEST_F(TuningTest, MeasuresOnceAndKeepsItForTheNextProcess) {
  load().forecast(walk(1, 100));
  EXPECT_TRUE(logged("products measured, " + schedule_file()));
  const std::string kept = text_of(schedule_file());
  EXPECT_NE(kept.find("\nqkv "), std::string::npos) << kept;
  log_.clear();
  load().forecast(walk(2, 100));
  EXPECT_FALSE(logged("measured"));
  EXPECT_TRUE(logged("plan 1: new shape class"));
  EXPECT_EQ(text_of(schedule_file()), kept);
  load().forecast(walk(2, 4000));  // adds another size class
  EXPECT_GT(text_of(schedule_file()).size(), kept.size());
}

TEST_F(TuningTest, WithoutACacheMeasuresAgainAndWritesNothing) {
  cache_.clear();
  for (int run = 0; run < 2; ++run) {
    log_.clear();
    load().forecast(walk(1, 100));
    EXPECT_TRUE(logged("measured, without a cache"));
  }
}

// Any damage to the file is detected, reported and repaired; the forecast does not change.
TEST_F(TuningTest, ReplacesADamagedFile) {
  const Forecast expected = load().forecast(walk(1, 100));
  const std::string file = schedule_file(), good = text_of(file);
  for (std::size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::ofstream(file) << bad;
    log_.clear();
    EXPECT_EQ(load().forecast(walk(1, 100)).mean, expected.mean);
    EXPECT_TRUE(logged("plan 1: cache file invalid: " + file)) << at;
    EXPECT_TRUE(logged("measured"));
  }
  for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), good + "x"}) {
    std::ofstream(file) << bad;
    log_.clear();
    load().forecast(walk(1, 100));
    EXPECT_TRUE(logged("plan 1: cache file invalid: " + file));
  }
}

TEST_F(TuningTest, ToleratesAnUnwritableFolder) {
  std::ofstream(folder_ / "file") << "";
  cache_ = folder_ / "file";
  EXPECT_EQ(load().forecast(walk(1, 100)).mean, load(Mode::standard).forecast(walk(1, 100)).mean);
  EXPECT_TRUE(logged("measured, not kept: "));
}

TEST(TextEntry, HoldsOneTextForOneKey) {
  const TemporaryFolder folder;
  const io::CacheFile entry(folder.path(), "sub", "entry.txt");
  EXPECT_FALSE(cache::read_text_entry(entry, "key").text);
  cache::write_text_entry(entry, "key", "a\nb\n");
  EXPECT_EQ(cache::read_text_entry(entry, "key").text, "a\nb\n");
  const cache::TextEntry other = cache::read_text_entry(entry, "another");
  EXPECT_FALSE(other.text);
  EXPECT_EQ(other.invalid, "");  // intact, with another key
}

// A FIFO in its place does not hang the run; nothing is written through a link.
TEST(TextEntry, IsReplacedUnlessItIsAFileOfOurs) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const io::CacheFile entry(folder.path(), "sub", "entry.txt");
  const std::string behind = folder / "behind";
  const auto expect_replaced = [&](std::string_view reason, const std::function<void()>& make) {
    fs::remove_all(entry.path());
    make();
    const cache::TextEntry found = cache::read_text_entry(entry, "key");
    EXPECT_FALSE(found.text) << reason;
    EXPECT_NE(found.invalid.find(reason), std::string::npos) << found.invalid;
    cache::write_text_entry(entry, "key", "text\n");
    EXPECT_EQ(cache::read_text_entry(entry, "key").text, "text\n") << reason;
    EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms(0600));
  };
  cache::write_text_entry(entry, "key", "text\n");
  std::ofstream(behind) << "precious";
  expect_replaced("a FIFO", [&] { ASSERT_EQ(mkfifo(entry.path().c_str(), 0600), 0); });
  expect_replaced("symbolic link", [&] { fs::create_symlink(behind, entry.path()); });
  expect_replaced("2 names", [&] { fs::create_hard_link(behind, entry.path()); });
  expect_replaced("may write it", [&] {
    std::ofstream(entry.path()) << "x";
    fs::permissions(entry.path(), fs::perms(0646));
  });
  EXPECT_EQ(text_of(behind), "precious");
  fs::create_directory(folder / "sub/dir");
  EXPECT_NE(cache::read_text_entry({folder.path(), "sub", "dir"}, "key").invalid, "");
}

// An intact file with malformed lines under the right key.
TEST_F(TuningTest, RefusesMalformedLines) {
  load().forecast(walk(1, 100));
  const std::string file = schedule_file();
  const std::string first = text_of(file).substr(0, text_of(file).find('\n') + 1);
  for (const std::string lines :
       {"qkv 8 2\n", "qkv 8 2 0 0\n", "norm 8 2 0\n", "qkv 0 2 0\n", "qkv 8 -2 0\n", "\n"}) {
    const std::string text = first + lines;
    io::Sha256 hash;
    hash.update(std::as_bytes(std::span(text)));
    std::ofstream(file) << text << hash.hex_digest() << "\n";
    log_.clear();
    load().forecast(walk(1, 100));
    EXPECT_TRUE(logged("plan 1: cache file invalid: " + file)) << lines;
  }
}

}  // namespace
}  // namespace toto
