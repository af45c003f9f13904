// The interface between an engine and the tools that judge it. Tests put a broken engine behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "toto/toto.h"

namespace toto::validate {

class Runner {
 public:
  virtual ~Runner() = default;
  virtual Trace trace(const Series& series, const ForecastOptions& options) = 0;
  // Thread safe.
  virtual std::vector<Forecast> forecast(std::span<const Series> batch,
                                         const ForecastOptions& options) = 0;
  virtual const ModelInfo& model() const = 0;
  virtual std::string kv_cache_name() const = 0;
  virtual void finish_warm_up() = 0;  // plans made from now on are replans
  virtual std::int64_t replans() const = 0;
};
using Loader =
    std::function<std::unique_ptr<Runner>(const std::string& folder, const EngineOptions& options)>;
std::unique_ptr<Runner> load_runner(const std::string& folder, const EngineOptions& options);

// The modes that support a dtype: the meaning of `--modes all`.
std::vector<Mode> all_modes(DType dtype);

// Options that also collect the sentences about the origin of the weights in `notes`: read from a
// cache, packed, or why a cache entry was not used. Each is noted once. `notes` must outlive the
// engine.
EngineOptions noting_weights(EngineOptions options, std::vector<std::string>& notes);
// Adds the sentence unless `notes` has it.
void note_once(const std::string& sentence, std::vector<std::string>& notes);

// All numbers of a forecast that must be bit-for-bit reproducible.
std::vector<std::uint32_t> bits_of(const Forecast& forecast);
// The number of differing words; all of them if the sizes differ.
std::size_t num_different(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

// Peak resident memory above the level at construction.
class PeakMemory {
 public:
  PeakMemory();
  std::optional<double> megabytes() const;  // nothing if the system does not report it
  // The same for a loaded engine, at least the size of its weights: memory that the allocator
  // reuses does not show as growth.
  std::optional<double> megabytes(const ModelInfo& model) const;

 private:
  std::optional<std::uint64_t> before_;
};

}  // namespace toto::validate
