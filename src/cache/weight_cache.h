// Keeps packed weights between starts. Failures are not errors: the caller continues without the
// cache and gets a warning.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "cache/loaded_file.h"
#include "cache/packed_file.h"

namespace toto::cache {

// An entry in use. The sections are views of the file in memory.
struct KeptWeights {
  LoadedFile file;
  std::string weights_sha256;
  std::vector<std::span<const std::byte>> sections;
};

// The cache entry of one model's packed weights. Not thread-safe; any number of processes may use
// the same folder.
class WeightCache {
 public:
  using Log = std::function<void(std::string_view)>;

  // `log` receives every hit and miss; it may be empty.
  WeightCache(std::string folder, std::uint64_t max_bytes, io::CacheFile file, EntryKey key,
              Log log);

  // The entry, fully checked; an invalid one is removed with a warning.
  std::optional<KeptWeights> find(ThreadPool& pool);
  // Writes the entry unless another process has done so; evicts old entries to make room.
  void keep(std::string_view weights_sha256, std::span<const std::span<const std::byte>> sections);
  void skip(std::string_view reason) const;  // logs why nothing is kept

  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  bool is_written_already() const;
  void drop(std::string_view reason);
  void log(std::string_view sentence) const;
  const std::string& path() const { return file_.path(); }

  std::string folder_;
  std::uint64_t max_bytes_;
  io::CacheFile file_;
  EntryKey key_;
  Log log_;
  std::vector<std::string> warnings_;
};

}  // namespace toto::cache
