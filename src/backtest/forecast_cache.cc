#include "backtest/forecast_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "io/atomic_file.h"
#include "io/sha256.h"
#include "toto/toto.h"

namespace toto::backtest {
namespace {

// A record: key, values, checksum over the setting's digest and both. All of one size, so an
// incomplete record at the end is detected. Sixteen bytes of a SHA-256: a program that changes a
// value, or moves a record from another setting's file, must compute it, not only compensate a sum.
constexpr std::size_t kBodyBytes = sizeof(ContextKey) + sizeof(RawForecast);
using RecordSum = std::array<std::byte, 16>;
constexpr std::size_t kRecordBytes = kBodyBytes + sizeof(RecordSum);
constexpr std::string_view kMagic = "TOTOFC02";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

RecordSum checksum(std::string_view header, std::string_view body) {
  io::Sha256 sha256;
  sha256.update(std::as_bytes(std::span(header)));
  sha256.update(std::as_bytes(std::span(body)));
  RecordSum sum;
  std::copy_n(sha256.digest().begin(), sum.size(), sum.begin());
  return sum;
}

std::string digest(std::span<const std::byte> bytes) {
  io::Sha256 sha256;
  sha256.update(bytes);
  return sha256.hex_digest();
}

}  // namespace

ContextKey key_of(std::span<const float> context) {
  const std::string hex = digest(std::as_bytes(context));
  ContextKey key;
  std::from_chars(hex.data(), hex.data() + 16, key.high, 16);
  std::from_chars(hex.data() + 16, hex.data() + 32, key.low, 16);
  return key;
}

ForecastCache::ForecastCache(const std::string& cache_folder, std::string_view setting) {
  const std::string name = digest(std::as_bytes(std::span(setting)));
  header_ = std::string(kMagic) + name;
  file_.emplace(cache_folder, "forecasts", name.substr(0, 32) + ".bin");
  load();
}

void ForecastCache::load() {
  if (!file_) return;
  std::string bytes;
  try {
    bytes = io::read_file(file_->open(), kMaxFileBytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) throw;
    if (error.code() != ErrorCode::not_found) {
      warnings_.push_back(fmt::format("kept forecasts are not used: {}", error.what()));
    }
    return;
  }
  if (!bytes.starts_with(header_)) return;
  std::string_view rest = std::string_view(bytes).substr(header_.size());
  for (; rest.size() >= kRecordBytes; rest.remove_prefix(kRecordBytes)) {
    RecordSum expected;
    std::memcpy(expected.data(), rest.data() + kBodyBytes, sizeof expected);
    if (checksum(header_, rest.substr(0, kBodyBytes)) != expected) continue;
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
    if (!entries_.emplace(key, values).second || !file_) continue;
    std::array<char, kBodyBytes> body{};
    std::memcpy(body.data(), &key, sizeof key);
    std::memcpy(body.data() + sizeof key, values.data(), sizeof values);
    bytes.append(body.data(), body.size());
    const RecordSum sum = checksum(header_, {body.data(), body.size()});
    bytes.append(reinterpret_cast<const char*>(sum.data()), sum.size());
  }
  if (!bytes.empty() && !gave_up_) append(bytes);
}

void ForecastCache::append(std::string_view bytes) {
  if (!file_) return;
  const auto give_up = [&](std::string_view reason) {
    gave_up_ = true;
    warnings_.push_back(fmt::format("forecasts are not kept for the next run: {}", reason));
  };
  try {
    io::CacheFile::Locked file = file_->lock();
    // Another process may have been killed while it wrote: its last record goes.
    std::uint64_t end = header_.size();
    if (file.begins_with(header_)) {
      end += (file.size() - header_.size()) / kRecordBytes * kRecordBytes;
    } else {
      file.resize(0);
      file.write_at(0, header_);
    }
    if (end + bytes.size() > kMaxFileBytes) {
      return give_up(file_->path() + ": the file has reached its limit of 1 GB");
    }
    try {
      file.write_at(end, bytes);
    } catch (const Error& error) {
      give_up(error.what());
      file.resize(end);
    }
  } catch (const Error& error) {
    if (!gave_up_) give_up(error.what());
  }
}

}  // namespace toto::backtest
