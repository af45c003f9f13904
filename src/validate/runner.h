// What the tools that judge an engine need of it: the place where a test puts a broken one.
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
  virtual Trace trace(const Series& series, int horizon) = 0;
  // From several threads at once.
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

// The modes a dtype can be run in: what `--modes all` stands for.
std::vector<Mode> all_modes(DType dtype);

// The options with an ear for where weights come from when an engine is loaded: mapped from a
// cache, packed, and what was wrong with an entry. Each sentence is noted once, in `notes`, which
// must outlive the engine.
EngineOptions noting_weights(EngineOptions options, std::vector<std::string>& notes);
// Adds what is not there yet.
void note_once(const std::string& sentence, std::vector<std::string>& notes);

// Every number of a forecast that is promised to be the same bits everywhere, one after the other.
std::vector<std::uint32_t> bits_of(const Forecast& forecast);
// How many of them differ; all if there are more of one than of the other.
std::size_t num_different(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

// The peak of resident memory above what there was when the object was made.
class PeakMemory {
 public:
  PeakMemory();
  std::optional<double> megabytes() const;  // absent where the system does not tell
  // The same of a loaded engine: memory that the allocator had kept from before does not show up as
  // growth, the weights must.
  std::optional<double> megabytes(const ModelInfo& model) const;

 private:
  std::optional<std::uint64_t> before_;
};

}  // namespace toto::validate
