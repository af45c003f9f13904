#include "backtest/forecast_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "io/atomic_file.h"
#include "io/sha256.h"
#include "toto/toto.h"

namespace toto::backtest {
namespace {

// A record: key, values, checksum over both. All of one size, so an incomplete record at the end is
// detected.
constexpr std::size_t kBodyBytes = sizeof(ContextKey) + sizeof(RawForecast);
constexpr std::size_t kRecordBytes = kBodyBytes + sizeof(std::uint64_t);
constexpr std::string_view kMagic = "TOTOFC01";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

// FNV-1a: every step is a bijection, so no changed byte goes unnoticed.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string digest(std::span<const std::byte> bytes) {
  io::Sha256 sha256;
  sha256.update(bytes);
  return sha256.hex_digest();
}

// Closing it also gives up the lock.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~LockedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  std::size_t size() const {
    struct stat status{};
    return ::fstat(fd_, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
  }
  bool begins_with(std::string_view text) const {
    std::string begin(text.size(), '\0');
    return ::pread(fd_, begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
           begin == text;
  }
  bool resize(std::size_t size) { return ::ftruncate(fd_, static_cast<off_t>(size)) == 0; }
  bool write_at(std::size_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(written));
      offset += static_cast<std::size_t>(written);
    }
    return true;
  }

 private:
  int fd_;
};

}  // namespace

ContextKey key_of(std::span<const float> context) {
  const std::string hex = digest(std::as_bytes(context));
  ContextKey key;
  std::from_chars(hex.data(), hex.data() + 16, key.high, 16);
  std::from_chars(hex.data() + 16, hex.data() + 32, key.low, 16);
  return key;
}

ForecastCache::ForecastCache(const std::string& folder, std::string_view setting) {
  const std::string name = digest(std::as_bytes(std::span(setting)));
  header_ = std::string(kMagic) + name;
  path_ = (std::filesystem::path(folder) / (name.substr(0, 32) + ".bin")).string();
  load();
}

void ForecastCache::load() {
  std::string bytes;
  try {
    bytes = io::read_file(path_, kMaxFileBytes);
  } catch (const Error&) {  // not there yet, or nothing to rely on
    return;
  }
  if (!bytes.starts_with(header_)) return;
  std::string_view rest = std::string_view(bytes).substr(header_.size());
  for (; rest.size() >= kRecordBytes; rest.remove_prefix(kRecordBytes)) {
    std::uint64_t expected = 0;
    std::memcpy(&expected, rest.data() + kBodyBytes, sizeof expected);
    if (checksum(rest.substr(0, kBodyBytes)) != expected) continue;
    ContextKey key;
    RawForecast values{};
    std::memcpy(&key, rest.data(), sizeof key);
    std::memcpy(values.data(), rest.data() + sizeof key, sizeof values);
    entries_.emplace(key, values);
  }
}

const RawForecast* ForecastCache::find(const ContextKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

void ForecastCache::add(std::span<const std::pair<ContextKey, RawForecast>> entries) {
  std::string bytes;
  for (const auto& [key, values] : entries) {
    if (!entries_.emplace(key, values).second || path_.empty()) continue;
    std::array<char, kBodyBytes> body{};
    std::memcpy(body.data(), &key, sizeof key);
    std::memcpy(body.data() + sizeof key, values.data(), sizeof values);
    bytes.append(body.data(), body.size());
    const std::uint64_t sum = checksum({body.data(), body.size()});
    bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  }
  if (!bytes.empty() && problem_.empty()) append(bytes);
}

void ForecastCache::append(std::string_view bytes) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  LockedFile file(path_);
  const auto give_up = [&](const std::string& reason) {
    problem_ = fmt::format("forecasts are not kept for the next run: {}: {}", path_, reason);
  };
  if (!file.is_open()) return give_up(std::generic_category().message(errno));
  // Another process may have been killed while it wrote: its last record goes.
  std::size_t end = header_.size();
  if (file.begins_with(header_)) {
    end += (file.size() - header_.size()) / kRecordBytes * kRecordBytes;
  } else if (!file.resize(0) || !file.write_at(0, header_)) {
    return give_up(std::generic_category().message(errno));
  }
  if (end + bytes.size() > kMaxFileBytes) return give_up("the file has reached its limit of 1 GB");
  if (!file.write_at(end, bytes)) {
    const std::string reason = std::generic_category().message(errno);
    file.resize(end);
    give_up(reason);
  }
}

}  // namespace toto::backtest
