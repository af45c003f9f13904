// The cache of packed weights as the command uses it: folders, flags, processes.
#include <chrono>
#include <thread>

#include "cache/cache_folder.h"
#include "cli_fixture.h"
#include "toto1_models.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

class CacheTest : public CliTest {
 protected:
  void SetUp() override {
    make_model(mini_config(), 1, io::TensorType::f32, path("model"));
    file("data.csv", wide_csv(100));
    const Result plain = forecast({"--no-cache"});
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    expected_ = answer_of(plain);
    warnings_ = count_of(plain.err, "warning: ");  // that the model is untrained
    EXPECT_FALSE(fs::exists(cache_));
  }

  std::vector<std::string> words(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"forecast", "data.csv",  "--model", "model",  "--horizon",
                                      "3",        "--samples", "5",       "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Result forecast(const std::vector<std::string>& more = {}, Environment environment = {}) {
    environment.emplace("TOTO_CACHE_DIR", cache_);
    environment.emplace("TOTO_LOGS", "plans");
    return run(words(more), environment);
  }

  static std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  // All but the timings, which stand at the end.
  static std::string answer_of(const Result& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(0, result.out.find("\"timings_ms\""));
  }
  void expect_right(const Result& result, std::size_t new_warnings = 0) {
    EXPECT_EQ(answer_of(result), expected_);
    EXPECT_EQ(count_of(result.err, "warning: "), warnings_ + new_warnings) << result.err;
  }
  std::string entry() const { return cache::entry_file(cache_, path("model"), "f32").path(); }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(cache_ + "/weights"), {}));
  }

  std::string cache_ = path("cache");
  std::string expected_;
  std::size_t warnings_ = 0;
};

TEST_F(CacheTest, TheSecondStartReadsWhatTheFirstKept) {
  const Result cold = forecast(), warm = forecast(), without = forecast({"--no-cache"});
  expect_right(cold);
  EXPECT_TRUE(has(cold.err, "[plans] weights: packed and kept in " + entry())) << cold.err;
  expect_right(warm);
  EXPECT_TRUE(has(warm.err, "[plans] weights: read from " + entry())) << warm.err;
  expect_right(without);
  EXPECT_FALSE(has(without.err, "weights:")) << without.err;
  EXPECT_EQ(num_files(), 1u);
  for (const char* mode : {"reduce-overhead", "reference"}) {
    const Result other = forecast({"--mode", mode});
    EXPECT_EQ(other.exit_code, 0);
    EXPECT_EQ(has(other.err, "read from"), std::string_view(mode) != "reference") << other.err;
  }
  EXPECT_TRUE(has(forecast({"--dtype", "int8"}).err, "packed and kept in"));
  EXPECT_TRUE(has(forecast({"--dtype", "int8"}).err, "read from"));
  EXPECT_EQ(num_files(), 2u);
}

TEST_F(CacheTest, TheFolderIsChosenByFlagThenVariableThenConvention) {
  expect_right(forecast({"--cache-dir", path("flag")}));
  EXPECT_TRUE(fs::exists(path("flag/weights")));
  EXPECT_FALSE(fs::exists(cache_));
  EXPECT_EQ(run(words(), {{"XDG_CACHE_HOME", path("xdg")}}).exit_code, 0);
  EXPECT_TRUE(fs::exists(path("xdg/toto/weights")));
  EXPECT_EQ(run(words(), {{"HOME", path("home")}}).exit_code, 0);
  EXPECT_TRUE(fs::exists(path("home/.cache/toto/weights")));
  expect_right(run(words(), {{"HOME", ""}}));
  expect_refusal(2, {"--cache-dir is \"\", expected a folder"}, words({"--cache-dir", ""}));
  EXPECT_TRUE(has(run({"forecast", "--help"}).out, "--no-cache"));
  EXPECT_TRUE(has(run({"bench", "--help"}).out, "--cache-dir"));
}

TEST_F(CacheTest, AChangedModelIsNoticed) {
  forecast();
  const std::string weights = path("model/model.safetensors");
  std::string bytes = contents_of(weights);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);  // a mantissa's bit
  const fs::file_time_type time = fs::last_write_time(weights);
  put(weights, bytes);
  fs::last_write_time(weights, time);
  const Result changed = forecast();
  EXPECT_TRUE(has(changed.err, "made from other weights")) << changed.err;
  EXPECT_EQ(answer_of(changed), answer_of(forecast({"--no-cache"})));
  EXPECT_NE(answer_of(changed), expected_);  // at least the hash
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(CacheTest, ADamagedEntryIsOneWarning) {
  forecast();
  std::string bytes = contents_of(entry());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put(entry(), bytes);
  const Result result = forecast();
  expect_right(result, 1);
  EXPECT_TRUE(has(result.err, "warning: cache file invalid: " + entry() + ": ")) << result.err;
  EXPECT_TRUE(has(result.err, "[plans] weights: cache file invalid: ")) << result.err;
  expect_right(forecast());
}

TEST_F(CacheTest, EightProcessesShareAColdCache) {
  for (int round = 0; round < 3; ++round) {
    fs::remove_all(cache_);
    std::vector<Running> all;
    for (int i = 0; i < 8; ++i) all.push_back(start(words(), {{"TOTO_CACHE_DIR", cache_}}));
    for (const Running& running : all) expect_right(running.wait());
    EXPECT_EQ(num_files(), 1u) << "an entry, and nothing unfinished";
    EXPECT_TRUE(has(forecast().err, "read from"));
  }
}

TEST_F(CacheTest, KilledAtAnyMomentItLeavesTheCacheSound) {
  for (int i = 0; i < 20; ++i) {
    if (i % 4 == 0) fs::remove_all(cache_);
    const Running running = start(words(), {{"TOTO_CACHE_DIR", cache_}});
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
    kill(running.pid(), SIGKILL);
    running.wait();
    expect_right(forecast());
    expect_right(forecast());
  }
}

TEST_F(CacheTest, AFullDiskIsAWarning) {
  const Result result = shell(
      "ulimit -f 200; toto forecast data.csv --model model --horizon 3 "
      "--samples 5 --json - --cache-dir cache");
  expect_right(result, 1);
  EXPECT_TRUE(has(result.err, "warning: packed weights are not kept for the next start: "))
      << result.err;
  EXPECT_EQ(num_files(), 0u);
  expect_right(forecast());
}

TEST_F(CacheTest, AFolderThatCannotBeUsedIsAWarning) {
  file("plain", "");
  for (const std::string& folder :
       {path("plain"), std::string("/proc/nowhere"), path("plain/below")}) {
    const Result result = forecast({"--cache-dir", folder});
    expect_right(result, 1);
    EXPECT_TRUE(has(result.err, "not kept for the next start: " + folder)) << result.err;
  }
}

// Root may write anywhere: run by root, these are a user without rights.
TEST_F(CacheTest, WhatOnlyMayBeReadServes) {
  for (const std::string& folder : {path(""), path("model")})
    fs::permissions(folder, fs::perms(0755));
  const auto as_nobody = [&] {
    return start(words(), {{"TOTO_CACHE_DIR", cache_}, {"TOTO_LOGS", "plans"}}, {}, true).wait();
  };
  fs::create_directory(cache_);
  fs::permissions(cache_, fs::perms(0555));
  const Result cold = as_nobody();
  expect_right(cold, 1);
  EXPECT_TRUE(has(cold.err, "Permission denied")) << cold.err;
  fs::permissions(cache_, fs::perms(0755));
  forecast();
  // Another user's entry is not used, not even root's. Run by root, these are two users, else one.
  const std::size_t foreign = geteuid() == 0 ? 1 : 0;
  fs::permissions(cache_ + "/weights", fs::perms(0555));
  fs::permissions(entry(), fs::perms(0644));
  const Result warm = as_nobody();
  expect_right(warm, 2 * foreign);  // not used, and cannot be replaced
  EXPECT_EQ(has(warm.err, "read from"), foreign == 0) << warm.err;
  EXPECT_EQ(has(warm.err, "it belongs to another user"), foreign == 1) << warm.err;
  fs::permissions(entry(), fs::perms(0));
  const Result unreadable = as_nobody();
  expect_right(unreadable, 2);  // invalid, and cannot be replaced
  EXPECT_TRUE(has(unreadable.err, "cache file invalid: ")) << unreadable.err;
  fs::permissions(cache_ + "/weights", fs::perms(0777));
  const Result replaced = as_nobody();
  expect_right(replaced, 1);
  fs::permissions(cache_ + "/weights", fs::perms(0755));
  EXPECT_TRUE(has(as_nobody().err, "read from"));
}

TEST_F(CacheTest, DoctorAndInspectShowIt) {
  forecast();
  const std::uint64_t bytes = fs::file_size(entry());
  const Environment environment = {{"TOTO_CACHE_DIR", cache_}};
  const Result doctor = run({"doctor", "--model", "model"}, environment);
  EXPECT_EQ(doctor.exit_code, 0) << doctor.out;
  EXPECT_TRUE(has(doctor.out, fmt::format("{} (TOTO_CACHE_DIR), 1 packed models, {:.1f} MB", cache_,
                                          static_cast<double>(bytes) / 1e6)))
      << doctor.out;
  EXPECT_TRUE(has(run({"doctor", "--no-cache"}, environment).out, "ignored because of --no-cache"));
  const Result homeless = run({"doctor"}, {{"HOME", ""}});
  EXPECT_TRUE(has(homeless.out, "none: HOME is not set")) << homeless.out;
  const io::Json json = json_of(run({"inspect", "model", "--json", "-"}, environment));
  EXPECT_EQ(at(at(json, "cache"), "folder").string, cache_);
  EXPECT_EQ(at(at(json, "cache"), "entries").integer, 1);
  EXPECT_EQ(at(at(json, "cache"), "bytes").integer, static_cast<std::int64_t>(bytes));
  EXPECT_TRUE(has(run({"inspect", "model"}, environment).out, cache_ + ": 1 packed models"));
  EXPECT_EQ(num_files(), 1u) << "they look, and leave nothing";
}

}  // namespace
}  // namespace toto::cli
