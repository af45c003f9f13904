// Packed weights on disk: the same bits as without them, whatever happens to the model's files, the
// entry or the folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/threads.h"
#include "cache/cache_folder.h"
#include "io/safetensors.h"
#include "io/sha256.h"
#include "model/toto1/toto1_weights.h"
#include "test_model.h"
#include "trace_values.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;
using testing::text_of;
using testing::walk;
using testing::write_text;

class PackedCacheTest : public ::testing::Test {
 protected:
  struct Loaded {
    std::vector<std::string> log, warnings;
    Trace trace;
    std::string sha256;
    std::size_t weight_bytes = 0;

    bool logged(std::string_view part) const {
      return std::any_of(log.begin(), log.end(), [part](const std::string& line) {
        return line.find(part) != std::string::npos;
      });
    }
    bool was_read() const { return logged("weights: read from"); }
    bool was_kept() const { return logged("weights: packed and kept in"); }
  };

  EngineOptions with_cache(DType dtype = DType::f32) const {
    EngineOptions options{.dtype = dtype, .threads = 2};
    options.cache.folder = cache_;
    options.cache.min_model_bytes = 0;
    return options;
  }

  static Loaded load(const std::string& model, EngineOptions options) {
    Loaded loaded;
    options.on_plan = [&](std::string_view line) { loaded.log.emplace_back(line); };
    const Engine engine = Engine::load(model, options);
    loaded.warnings = engine.model().warnings;
    loaded.sha256 = engine.model().weights_sha256;
    loaded.weight_bytes = engine.model().weight_bytes;
    loaded.trace = engine.trace(walk(3, 60, 2), {.horizon = 20});
    return loaded;
  }
  Loaded load(DType dtype = DType::f32) const { return load(model_, with_cache(dtype)); }

  static void expect_same(const Loaded& a, const Loaded& b) {
    ASSERT_EQ(a.trace.arrays.size(), b.trace.arrays.size());
    for (std::size_t i = 0; i < a.trace.arrays.size(); ++i) {
      EXPECT_EQ(a.trace.arrays[i].values, b.trace.arrays[i].values) << a.trace.arrays[i].name;
    }
    EXPECT_EQ(a.sha256, b.sha256);
    EXPECT_EQ(a.weight_bytes, b.weight_bytes);
  }

  std::string entry(DType dtype = DType::f32) const {
    return cache::entry_file(cache_, model_, name_of(dtype)).path();
  }
  std::size_t num_files() const {  // finished or not
    std::error_code none;
    const fs::directory_iterator files(cache_ + "/weights", none);
    return none ? 0 : static_cast<std::size_t>(std::distance(files, {}));
  }

  // An entry changed by `damage` is not used: it is reported, written again, and then used.
  void expect_rebuilt(std::string_view reason, const std::function<void()>& damage) {
    const Loaded expected = load(model_, {.threads = 2});
    load();
    damage();
    const Loaded rebuilt = load();
    EXPECT_FALSE(rebuilt.was_read()) << reason;
    EXPECT_TRUE(rebuilt.was_kept()) << reason;
    EXPECT_TRUE(rebuilt.logged("weights: cache file invalid: " + entry())) << reason;
    ASSERT_EQ(rebuilt.warnings.size(), 1u) << reason;
    EXPECT_TRUE(rebuilt.warnings[0].starts_with("cache file invalid: " + entry() + ": "))
        << rebuilt.warnings[0];
    EXPECT_NE(rebuilt.warnings[0].find(reason), std::string::npos) << rebuilt.warnings[0];
    expect_same(rebuilt, expected);
    const Loaded again = load();
    EXPECT_TRUE(again.was_read()) << reason;
    EXPECT_TRUE(again.warnings.empty()) << reason;
    expect_same(again, expected);
    EXPECT_EQ(num_files(), 1u) << reason;
  }

  TemporaryFolder folder_;
  std::string cache_ = folder_ / "cache";
  std::string model_ = made_model(folder_);
};

TEST_F(PackedCacheTest, ColdWarmAndWithoutGiveTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::int8}) {
    const Loaded without = load(model_, {.dtype = dtype, .threads = 2});
    EXPECT_TRUE(without.log.empty());
    const Loaded cold = load(dtype), warm = load(dtype);
    EXPECT_TRUE(cold.was_kept() && !cold.was_read());
    EXPECT_TRUE(warm.was_read() && !warm.was_kept());
    EXPECT_TRUE(cold.warnings.empty() && warm.warnings.empty());
    expect_same(cold, without);
    expect_same(warm, without);
    EXPECT_EQ(warm.sha256, io::WeightFiles::open(model_).sha256());
  }
  EXPECT_EQ(num_files(), 3u) << "one for each dtype";
  // Threads, modes and instruction sets share an entry.
  EngineOptions other = with_cache();
  other.threads = 1;
  other.isa = Isa::reference;
  other.mode = Mode::reduce_overhead;
  const Loaded shared = load(model_, other);
  EXPECT_TRUE(shared.was_read());
  expect_same(shared, load());
  EXPECT_EQ(num_files(), 3u);
}

TEST_F(PackedCacheTest, EveryGoldensModelGivesTheSameBits) {
  int num_models = 0;
  for (const auto& golden : fs::directory_iterator(TOTO_SOURCE_DIR "/tests/golden")) {
    if (!golden.is_directory()) continue;
    const std::string model = golden.path().string();
    const Loaded without = load(model, {.threads = 1});
    const Loaded cold = load(model, with_cache()), warm = load(model, with_cache());
    EXPECT_TRUE(cold.was_kept()) << model;
    EXPECT_TRUE(warm.was_read()) << model;
    expect_same(cold, without);
    expect_same(warm, without);
    ++num_models;
  }
  EXPECT_GT(num_models, 20);
}

TEST_F(PackedCacheTest, NothingIsKeptUnlessAskedFor) {
  load(model_, {});
  EngineOptions options = with_cache();
  options.cache.min_model_bytes = fs::file_size(model_ + "/model.safetensors") + 1;
  EXPECT_TRUE(load(model_, options).log.empty()) << "smaller than worth it";
  options = with_cache();
  options.mode = Mode::reference;
  EXPECT_TRUE(load(model_, options).log.empty());
  EXPECT_FALSE(fs::exists(cache_));
}

// The packed bytes of an engine version are what its entries hold. If this fails and the new bytes
// are right, increase kToto1PackingVersion, then put the new sums here.
TEST_F(PackedCacheTest, PackedBytesChangeOnlyWithTheirVersion) {
  struct Case {
    DType dtype;
    std::string_view sum;
  };
  ThreadPool pool(1);
  const Checkpoint checkpoint = Checkpoint::open(model_);
  for (const auto& [dtype, expected] :
       {Case{DType::f32, "ce732a11cee4403a"}, Case{DType::bf16, "373f816377c4af10"},
        Case{DType::int8, "02b99dc0555b3573"}}) {
    const auto weights =
        checkpoint.architecture().pack(checkpoint, dtype, kernels_for(Isa::reference), pool);
    io::Sha256 sum;
    const std::string version = std::to_string(kToto1PackingVersion);
    sum.update(std::as_bytes(std::span(version)));
    for (const std::span<const std::byte> array : weights->arrays()) sum.update(array);
    EXPECT_EQ(sum.hex_digest().substr(0, 16), expected) << name_of(dtype);
  }
}

// ------------------------------------------------------------------------------ the model's files

class ChangedModelTest : public PackedCacheTest {
 protected:
  void SetUp() override {
    before_ = load();
    ASSERT_TRUE(load().was_read());
  }
  // Packed again from the current files, without a warning; then mapped.
  void expect_noticed() {
    const Loaded now = load();
    EXPECT_FALSE(now.was_read());
    EXPECT_TRUE(now.logged("made from other weights")) << now.log.size();
    EXPECT_TRUE(now.was_kept());
    EXPECT_TRUE(now.warnings.empty());
    expect_same(now, load(model_, {.threads = 2}));
    EXPECT_TRUE(load().was_read());
    EXPECT_EQ(num_files(), 1u) << "the old entry is replaced";
  }
  // Other numbers, the same size: writes into the file, as it is.
  void edit_in_place() const {
    const int fd = open(weights_.c_str(), O_WRONLY);
    const float value = 0.5f;
    ASSERT_EQ(
        pwrite(fd, &value, sizeof value, static_cast<off_t>(fs::file_size(weights_) / 2 & ~3)), 4);
    close(fd);
  }

  std::string weights_ = model_ + "/model.safetensors";
  Loaded before_;
};

TEST_F(ChangedModelTest, EditedInPlace) {
  edit_in_place();
  expect_noticed();
  EXPECT_NE(values_of(load().trace, "mean"), values_of(before_.trace, "mean"));
  EXPECT_NE(load().sha256, before_.sha256);
}

TEST_F(ChangedModelTest, EditedInPlaceAndSetBackInTime) {
  const fs::file_time_type time = fs::last_write_time(weights_);
  edit_in_place();
  fs::last_write_time(weights_, time);
  expect_noticed();
  EXPECT_NE(values_of(load().trace, "mean"), values_of(before_.trace, "mean"));
}

// Just after the entry was written, within one tick of the file system's clock.
TEST_F(ChangedModelTest, EditedAgainAndAgainWithinATick) {
  for (int i = 0; i < 20; ++i) {
    std::string text = text_of(weights_);
    text[text.size() - 1 - std::size_t(i) * 4] ^= 1;
    write_text(weights_, text);
    expect_same(load(), load(model_, {.threads = 2}));
  }
}

TEST_F(ChangedModelTest, Touched) {
  fs::last_write_time(weights_, fs::file_time_type::clock::now());
  expect_noticed();
  expect_same(load(), before_);
}

TEST_F(ChangedModelTest, ReplacedByRename) {
  fs::copy(weights_, weights_ + ".new");
  fs::last_write_time(weights_ + ".new", fs::last_write_time(weights_));
  fs::rename(weights_ + ".new", weights_);
  expect_noticed();
}

TEST_F(ChangedModelTest, ConfigEdited) {
  Toto1Config config = small_config();
  config.spacewise_first = !config.spacewise_first;  // the same tensors, another network
  write_text(model_ + "/config.json", toto1_config_json(config));
  expect_noticed();
  EXPECT_NE(values_of(load().trace, "mean"), values_of(before_.trace, "mean"));
}

TEST_F(ChangedModelTest, AnotherModelInItsFolder) {
  fs::remove_all(model_);
  Toto1Config config = small_config();
  config.num_layers = 6;
  fs::rename(made_model(folder_, config, 2), model_);
  expect_noticed();
}

TEST_F(ChangedModelTest, RefusesDamagedWeights) {
  const int fd = open(weights_.c_str(), O_WRONLY);
  const std::uint32_t nan = 0x7FC00000;
  ASSERT_EQ(pwrite(fd, &nan, 4, static_cast<off_t>(fs::file_size(weights_) - 4)), 4);
  close(fd);
  EXPECT_NE(error_of([&] { load(); }).find("finite"), std::string::npos);
  EXPECT_NE(error_of([&] { load(); }).find("finite"), std::string::npos);
  fs::resize_file(weights_, fs::file_size(weights_) - 1);
  EXPECT_NE(error_of([&] { load(); }).find("model.safetensors"), std::string::npos);
}

// ------------------------------------------------------------------------------------- the entry

TEST_F(PackedCacheTest, ReplacesDamagedEntries) {
  load();
  const std::string good = text_of(entry());
  const auto put = [&](std::string bytes) {
    return [this, bytes = std::move(bytes)] { write_text(entry(), bytes); };
  };
  const auto flipped = [&](std::size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    return put(bytes);
  };
  expect_rebuilt("does not hold packed weights", flipped(0));
  expect_rebuilt("its format is 18, expected 2", flipped(8));
  expect_rebuilt("header does not match", flipped(12));    // the number of sections
  expect_rebuilt("header does not match", flipped(16));    // the size
  expect_rebuilt("header does not match", flipped(24));    // the key
  expect_rebuilt("header does not match", flipped(100));   // the weights' hash
  expect_rebuilt("header does not match", flipped(160));   // the header's checksum
  expect_rebuilt("contents do not match", flipped(184));   // the table
  expect_rebuilt("contents do not match", flipped(4095));  // padding
  expect_rebuilt("contents do not match", flipped(4096));  // weights
  expect_rebuilt("contents do not match", flipped(good.size() / 2));
  expect_rebuilt("contents do not match", flipped(good.size() - 33));
  expect_rebuilt("contents do not match", flipped(good.size() - 1));  // the checksum
  expect_rebuilt("it holds 0 bytes", put(""));
  expect_rebuilt("it holds 100 bytes", put(good.substr(0, 100)));
  expect_rebuilt("it holds 4096 bytes, expected " + std::to_string(good.size()),
                 put(good.substr(0, 4096)));
  expect_rebuilt("expected " + std::to_string(good.size()), put(good.substr(0, good.size() - 1)));
  expect_rebuilt("expected " + std::to_string(good.size()), put(good + '\0'));
  std::string holes = good;  // as after a power cut
  std::fill(holes.begin() + 8192, holes.begin() + 12288, '\0');
  expect_rebuilt("contents do not match", put(holes));
  expect_rebuilt("does not hold packed weights", put(std::string(good.size(), '\0')));
}

TEST_F(PackedCacheTest, ReplacesNonFiles) {
  const auto replaced = [&](const std::function<void()>& make) {
    return [this, make] {
      fs::remove(entry());
      make();
    };
  };
  expect_rebuilt("a folder", replaced([&] { fs::create_directory(entry()); }));
  expect_rebuilt("a FIFO", replaced([&] { mkfifo(entry().c_str(), 0600); }));
  // Never written through: what is behind a link stays as it is.
  const std::string behind = folder_ / "behind";
  write_text(behind, "precious");
  expect_rebuilt("a symbolic link", replaced([&] { fs::create_symlink(behind, entry()); }));
  expect_rebuilt("has 2 names", replaced([&] {
                   fs::remove(behind);
                   write_text(behind, "precious");
                   fs::create_hard_link(behind, entry());
                 }));
  EXPECT_EQ(text_of(behind), "precious");
  // Right in every byte, but another user could have written it.
  expect_rebuilt("group or others may write it (mode 0666)",
                 [&] { ASSERT_EQ(chmod(entry().c_str(), 0666), 0); });
  if (geteuid() == 0) {
    expect_rebuilt("another user", [&] { EXPECT_EQ(chown(entry().c_str(), 12345, 0), 0); });
  } else {
    expect_rebuilt("Permission denied", [&] { chmod(entry().c_str(), 0); });
  }
}

TEST_F(PackedCacheTest, KeepsAFolderWithFilesInItsPlace) {
  fs::create_directories(entry() + "/inside");
  const Loaded loaded = load();
  ASSERT_EQ(loaded.warnings.size(), 2u);
  EXPECT_NE(loaded.warnings[0].find("cache file invalid"), std::string::npos);
  EXPECT_NE(loaded.warnings[1].find("not kept"), std::string::npos);
  EXPECT_TRUE(fs::exists(entry() + "/inside"));
  expect_same(loaded, load(model_, {.threads = 2}));
}

TEST_F(PackedCacheTest, EntriesArePrivateAndOlderOnesServe) {
  load();
  EXPECT_EQ(fs::status(entry()).permissions(), fs::perms(0600));
  fs::permissions(entry(), fs::perms(0644));  // as older versions made them
  const Loaded older = load();
  EXPECT_TRUE(older.was_read());
  EXPECT_TRUE(older.warnings.empty());
}

// Neither read nor written nor cleared: the subfolder may not lead elsewhere. The cache folder may.
TEST_F(PackedCacheTest, DoesNotFollowALinkedSubfolder) {
  const std::string behind = folder_ / "behind";
  fs::create_directories(behind);
  write_text(behind + "/other.packed", "precious");
  fs::create_directories(cache_);
  fs::create_directory_symlink(behind, cache_ + "/weights");
  EngineOptions options = with_cache();
  const Loaded loaded = load(model_, options);
  ASSERT_EQ(loaded.warnings.size(), 2u);
  EXPECT_NE(loaded.warnings[0].find("is a symbolic link"), std::string::npos);
  EXPECT_EQ(text_of(behind + "/other.packed"), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(behind), {}), 1);
  EXPECT_EQ(cache::usage_of(cache_).num_entries, 0u);
  EXPECT_FALSE(cache::make_room(cache_, entry(), 2, 1));
  EXPECT_TRUE(cache::make_room(cache_, entry(), 1, 1));
  EXPECT_EQ(text_of(behind + "/other.packed"), "precious");

  fs::remove(cache_ + "/weights");
  fs::create_directory_symlink(cache_, folder_ / "linked");
  options.cache.folder = folder_ / "linked";
  EXPECT_TRUE(load(model_, options).was_kept());
  EXPECT_TRUE(load(model_, options).was_read());
}

// An engine that uses an entry keeps it when it is cut, replaced or removed.
TEST_F(PackedCacheTest, AnEntryMayBeCutWhileInUse) {
  load();
  const Series series = walk(3, 60, 2);
  const Engine engine = Engine::load(model_, with_cache());
  const std::vector<double> expected = values_of(engine.trace(series, {.horizon = 20}), "mean");
  fs::resize_file(entry(), 0);
  EXPECT_EQ(values_of(engine.trace(series, {.horizon = 20}), "mean"), expected);
}

TEST_F(PackedCacheTest, AnEntryMayBeRemovedWhileInUse) {
  load();
  const Series series = walk(3, 60, 2);
  const Engine engine = Engine::load(model_, with_cache());
  const std::vector<double> expected = values_of(engine.trace(series, {.horizon = 20}), "mean");
  fs::remove(entry());
  EXPECT_EQ(values_of(engine.trace(series, {.horizon = 20}), "mean"), expected);
  load();
  fs::last_write_time(model_ + "/model.safetensors", fs::file_time_type::clock::now());
  load();
  EXPECT_EQ(values_of(engine.trace(series, {.horizon = 20}), "mean"), expected);
}

// ------------------------------------------------------------------------------------ the folder

TEST_F(PackedCacheTest, EvictsTheLeastRecentlyUsed) {
  std::vector<std::string> models;
  for (std::uint64_t seed = 10; seed < 14; ++seed) {
    models.push_back(made_model(folder_, small_config(), seed));
  }
  EngineOptions options = with_cache();
  EXPECT_TRUE(load(models[0], options).was_kept());
  const cache::FolderUsage one = cache::usage_of(cache_);
  EXPECT_EQ(one.num_entries, 1u);
  options.cache.max_bytes = one.bytes * 5 / 2;
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  pause();
  EXPECT_TRUE(load(models[1], options).was_kept());
  pause();
  EXPECT_TRUE(load(models[0], options).was_read());  // now the second one is the oldest
  pause();
  EXPECT_TRUE(load(models[2], options).was_kept());
  EXPECT_EQ(cache::usage_of(cache_).num_entries, 2u);
  EXPECT_TRUE(load(models[0], options).was_read());
  EXPECT_TRUE(load(models[2], options).was_read());
  EXPECT_FALSE(fs::exists(cache::entry_file(cache_, models[1], "f32").path()));

  options.cache.max_bytes = one.bytes - 1;
  const Loaded too_large = load(models[3], options);
  EXPECT_TRUE(too_large.logged("not kept: they take")) << too_large.log.size();
  EXPECT_TRUE(too_large.warnings.empty());
  EXPECT_EQ(cache::usage_of(cache_).num_entries, 2u) << "nothing had to go for it";
}

TEST_F(PackedCacheTest, RemovesFilesOfKilledProcesses) {
  fs::create_directories(cache_ + "/weights");
  const std::string old_file = cache_ + "/weights/.toto-1-0.tmp";
  const std::string new_file = cache_ + "/weights/.toto-2-0.tmp";
  write_text(old_file, "x");
  write_text(new_file, "x");
  fs::last_write_time(old_file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(load().was_kept());
  EXPECT_FALSE(fs::exists(old_file));
  EXPECT_TRUE(fs::exists(new_file)) << "another process may be writing it";
}

TEST_F(PackedCacheTest, WarnsAboutAnUnusableFolder) {
  write_text(cache_, "a file");
  for (int i = 0; i < 2; ++i) {
    const Loaded loaded = load();
    ASSERT_EQ(loaded.warnings.size(), 1u);
    EXPECT_NE(loaded.warnings[0].find(cache_), std::string::npos) << loaded.warnings[0];
    EXPECT_NE(loaded.warnings[0].find("not kept"), std::string::npos) << loaded.warnings[0];
    expect_same(loaded, load(model_, {.threads = 2}));
  }
}

TEST_F(PackedCacheTest, OneEntryForAnySpellingOfTheFolder) {
  fs::create_directory_symlink(model_, folder_ / "link");
  load();
  for (const std::string& spelling :
       {model_ + "/", folder_ / "./cache/../model-1", folder_ / "link"}) {
    EXPECT_TRUE(load(spelling, with_cache()).was_read()) << spelling;
  }
  EXPECT_EQ(num_files(), 1u);
  const std::string odd =
      cache::entry_file("/c", "/m/" + std::string(300, '\xff') + " x", "f32").path();
  EXPECT_LT(fs::path(odd).filename().string().size(), 120u);
  EXPECT_EQ(odd.find('\xff'), std::string::npos);
}

TEST_F(PackedCacheTest, LoadingFromSeveralThreads) {
  const Loaded expected = load(model_, {.threads = 2});
  std::vector<Loaded> results(8);
  std::vector<std::thread> threads;
  for (Loaded& result : results) {
    threads.emplace_back([&] { result = load(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Loaded& result : results) {
    expect_same(result, expected);
    EXPECT_TRUE(result.warnings.empty());
  }
  EXPECT_EQ(num_files(), 1u);
  EXPECT_TRUE(load().was_read());
}

}  // namespace
}  // namespace toto
