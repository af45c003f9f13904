// The file of packed weights itself: what is written is read, and nothing else is.
#include "cache/packed_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "cache/cache_folder.h"
#include "cache/checksum.h"
#include "cache/mapped_file.h"
#include "io_fixture.h"

namespace toto::cache {
namespace {

using io::contents_of;
using io::put;
using io::TemporaryFolder;

class PackedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::span<const std::byte>> sections;
    for (const std::uint64_t size : key_.sizes) {
      std::vector<std::byte>& section = sections_.emplace_back(size);
      for (std::size_t i = 0; i < size; ++i) section[i] = static_cast<std::byte>(i * 7 + size);
    }
    for (const auto& section : sections_) sections.emplace_back(section);
    write_entry(path_, key_, std::string(kDigestLength, 'a'), sections);
    bytes_ = contents_of(path_);
  }

  CheckedEntry check(const std::string& bytes) { return check(bytes, key_); }
  CheckedEntry check(const std::string& bytes, const EntryKey& key) {
    aligned_.assign(bytes.size() / 8 + 1, 0);
    std::memcpy(aligned_.data(), bytes.data(), bytes.size());
    return check_entry(std::as_bytes(std::span(aligned_)).first(bytes.size()), key, pool_);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a/b/entry.packed";
  EntryKey key_{.digest = std::string(kDigestLength, '1'), .sizes = {100, 0, 5000, 8192}};
  std::vector<std::vector<std::byte>> sections_;
  std::string bytes_;
  std::vector<std::uint64_t> aligned_;
  ThreadPool pool_{2};
};

TEST_F(PackedFileTest, WhatIsWrittenIsRead) {
  EXPECT_EQ(bytes_.size(), entry_bytes(key_));
  EXPECT_EQ(bytes_.size(), 4096u + 4096 + 0 + 8192 + 8192 + 8);
  const io::RegularFile file(path_);
  EXPECT_EQ(check_header(file, key_).state, EntryState::valid);
  const MappedFile mapped(file, pool_);
  const CheckedEntry entry = check_entry(mapped.bytes(), key_, pool_);
  ASSERT_EQ(entry.state, EntryState::valid) << entry.reason;
  EXPECT_EQ(entry.weights_sha256, std::string(kDigestLength, 'a'));
  ASSERT_EQ(entry.sections.size(), sections_.size());
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(entry.sections[i], sections_[i])) << i;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(entry.sections[i].data()) % kSectionAlignment, 0u);
  }
}

TEST_F(PackedFileTest, EveryFlippedByteIsFound) {
  std::string bytes = bytes_;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char flip = static_cast<char>(1 << i % 8);
    bytes[i] = static_cast<char>(bytes[i] ^ flip);
    ASSERT_EQ(check(bytes).state, EntryState::invalid) << "byte " << i;
    bytes[i] = static_cast<char>(bytes[i] ^ flip);
  }
  EXPECT_EQ(check(bytes).state, EntryState::valid);
}

TEST_F(PackedFileTest, EveryOtherLengthIsFound) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 5000 ? 1 : 61) {
    ASSERT_EQ(check(bytes_.substr(0, size)).state, EntryState::invalid) << size;
  }
  for (const std::size_t more : {1, 8, 4096}) {
    EXPECT_EQ(check(bytes_ + std::string(more, '\0')).state, EntryState::invalid) << more;
  }
}

TEST_F(PackedFileTest, PagesSwappedOrLostAreFound) {
  std::string bytes = bytes_;
  std::swap_ranges(bytes.begin() + 8192, bytes.begin() + 12288, bytes.begin() + 16384);
  EXPECT_EQ(check(bytes).state, EntryState::invalid);
  bytes = bytes_;
  std::fill(bytes.begin() + 8192, bytes.begin() + 12288, '\0');
  EXPECT_EQ(check(bytes).state, EntryState::invalid);
}

TEST_F(PackedFileTest, AnotherKeyIsStale) {
  EntryKey other = key_;
  other.digest.back() = '2';
  EXPECT_EQ(check(bytes_, other).state, EntryState::stale);
  EXPECT_EQ(check_header(io::RegularFile(path_), other).state, EntryState::stale);
  other.sizes.push_back(4096);
  EXPECT_EQ(check(bytes_, other).state, EntryState::stale);
  // Under one key sections have one size; if not, it is no entry to compute with.
  for (const std::vector<std::uint64_t>& sizes :
       {std::vector<std::uint64_t>{101, 0, 5000, 8192}, {100, 0, 5000}, {0, 100, 5000, 8192}}) {
    EXPECT_EQ(check(bytes_, {.digest = key_.digest, .sizes = sizes}).state, EntryState::invalid);
  }
}

// Written by a script that knows nothing of the code here.
TEST_F(PackedFileTest, EverySeedOfTheCorpusIsWhatItsNameSays) {
  const EntryKey key{.digest = key_.digest, .sizes = {100, 0, 5000}};
  int num_seeds = 0;
  for (const auto& seed :
       std::filesystem::directory_iterator(TOTO_SOURCE_DIR "/tests/corpus/packed")) {
    const std::string name = seed.path().filename().string();
    const EntryState expected = name.starts_with("ok_")      ? EntryState::valid
                                : name.starts_with("stale_") ? EntryState::stale
                                                             : EntryState::invalid;
    const CheckedEntry entry = check(contents_of(seed.path().string()), key);
    EXPECT_EQ(entry.state, expected) << name << ": " << entry.reason;
    ++num_seeds;
  }
  EXPECT_GE(num_seeds, 15);
}

// More than one chunk, chunks that end inside sections, and threads: as the writer summed it.
TEST_F(PackedFileTest, LargeEntries) {
  const EntryKey key{.digest = key_.digest, .sizes = {3'000'000, 64, 2'097'152, 1}};
  std::vector<std::vector<std::byte>> data;
  std::vector<std::span<const std::byte>> sections;
  for (const std::uint64_t size : key.sizes) data.emplace_back(size, std::byte{0x5A});
  for (const auto& section : data) sections.emplace_back(section);
  write_entry(path_, key, std::string(kDigestLength, 'b'), sections);
  const std::string bytes = contents_of(path_);
  EXPECT_EQ(check(bytes, key).state, EntryState::valid);
  for (std::size_t i = 5000; i < bytes.size(); i += 400'003) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_EQ(check(damaged, key).state, EntryState::invalid) << i;
  }
}

TEST(Checksum, DependsOnEveryBitAndPlace) {
  std::vector<std::byte> bytes(256);
  const std::uint64_t zeros = checksum(bytes);
  std::vector<std::uint64_t> seen = {zeros};
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    seen.push_back(checksum(bytes));
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
  seen.push_back(checksum(std::span(bytes).first(192)));
  seen.push_back(checksum({}));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(MappedFile, NothingAndFailures) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  put(folder / "empty", "");
  EXPECT_TRUE(MappedFile(io::RegularFile(folder / "empty"), pool).bytes().empty());
  // Shorter than when it was opened: an error, not SIGBUS.
  put(folder / "file", std::string(100'000, 'x'));
  const io::RegularFile file(folder / "file");
  std::filesystem::resize_file(folder / "file", 10);
  io::expect_error(ErrorCode::corrupt_file, {"file", "cannot be read"},
                   [&] { MappedFile(file, pool); });
}

// What a doctor sees without a model: every byte, up to as many as it may read.
TEST_F(PackedFileTest, EntriesOfAFolderAreComparedWithTheirChecksums) {
  std::filesystem::create_directories(folder_ / "cache/weights");
  const std::string entry = folder_ / "cache/weights/model-0-f32-1.packed";
  put(entry, bytes_);
  const std::string folder = folder_ / "cache";
  const auto damaged = [&](const std::string& bytes, std::uint64_t max_bytes) {
    put(entry, bytes);
    const EntriesCheck check = check_entries(folder, max_bytes);
    EXPECT_EQ(check.unread_bytes, max_bytes < bytes.size() ? bytes.size() : 0);
    return check.damaged.size();
  };
  EXPECT_EQ(damaged(bytes_, bytes_.size()), 0u);
  std::string flipped = bytes_;
  for (const std::size_t at : {std::size_t{4096}, bytes_.size() / 2, bytes_.size() - 1}) {
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_EQ(damaged(flipped, bytes_.size()), 1u) << at;
    EXPECT_EQ(damaged(flipped, bytes_.size() - 1), 0u) << "not read";
    flipped[at] = bytes_[at];
  }
  EXPECT_EQ(damaged(bytes_.substr(0, bytes_.size() - 8), bytes_.size()), 1u);
  EXPECT_EQ(damaged("", bytes_.size()), 1u);
}

}  // namespace
}  // namespace toto::cache
