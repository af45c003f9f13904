// Forecasts already made, by what they were made from: in memory, and in a file that later runs and
// other processes share. An interrupted run goes on where it stopped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backtest/strategy.h"
#include "io/cache_file.h"

namespace toto::backtest {

// Point and quantiles in the transformed space, as the engine gave them.
using RawForecast = std::array<float, 1 + kNumLevels>;

// 128 bits of the SHA-256 of a context.
struct ContextKey {
  std::uint64_t high = 0, low = 0;
  bool operator==(const ContextKey&) const = default;
  struct Hash {
    std::size_t operator()(const ContextKey& key) const { return key.low; }
  };
};
ContextKey key_of(std::span<const float> context);

// Not thread safe; two processes may use one file at the same time.
class ForecastCache {
 public:
  ForecastCache() = default;  // in memory only
  // `setting` describes everything but the context that a forecast depends on; each has a separate
  // file in the subfolder "forecasts" of `cache_folder`. A file that cannot be read or holds
  // something else counts as empty, an entry whose checksum is wrong as absent.
  ForecastCache(const std::string& cache_folder, std::string_view setting);

  const RawForecast* find(const ContextKey& key) const;  // nullptr if absent; valid until add()
  // Kept in memory always; if the file cannot take them, warnings() say why and no further attempt
  // is made.
  void add(std::span<const std::pair<ContextKey, RawForecast>> entries);
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void load();
  void append(std::string_view bytes);

  std::optional<io::CacheFile> file_;  // none: in memory only
  std::string header_;                 // what the file begins with: the full setting's digest
  // Entries are never removed. Separate blocks keep them from fragmenting the heap between large
  // buffers that are allocated and freed during the run.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_ =
      std::make_unique<std::pmr::monotonic_buffer_resource>(std::size_t{1} << 20);
  std::pmr::unordered_map<ContextKey, RawForecast, ContextKey::Hash> entries_{memory_.get()};
  bool gave_up_ = false;  // the file takes no more
  std::vector<std::string> warnings_;
};

}  // namespace toto::backtest
