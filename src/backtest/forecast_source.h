// Where forecasts come from: the engine, or in tests an oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backtest/forecast_cache.h"
#include "backtest/strategy.h"
#include "backtest/transform.h"
#include "toto/toto.h"

namespace toto::backtest {

// One target, as it can be known after the close of bar `decision`.
struct ForecastRequest {
  const Bars* bars = nullptr;
  std::size_t decision = 0;
  Target target = Target::close;
};

class ForecastSource {
 public:
  ForecastSource() = default;
  ForecastSource(const ForecastSource&) = delete;
  ForecastSource& operator=(const ForecastSource&) = delete;
  virtual ~ForecastSource() = default;
  // results[i] answers requests[i], in prices.
  virtual void forecast(std::span<const ForecastRequest> requests,
                        std::span<TargetForecast> results) = 0;
};

struct SourceOptions {
  Transform transform = Transform::pct;
  // What changes (pct, log) are multiplied by before the network sees them, and its answers divided
  // by. Toto's scaler has a smallest scale of about 0.3: to it fractions of a day look flat,
  // percents (100) do not.
  double return_scale = 1;
  std::size_t lag = 1;
  bool reuse_prefixes = true;     // the bits do not depend on it
  ForecastOptions forecast = {};  // horizon and quantiles are set by the source
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

// The quantile levels and the horizon a backtest asks for.
ForecastOptions backtest_options(const SourceOptions& options);

// Everything a forecast depends on besides its context, for the cache: weights, engine, precision,
// instruction set, mode, and every option.
std::string cache_setting(const Engine& engine, const SourceOptions& options);

// Patches of all contexts: run through the network, and taken over from a shorter context.
struct PatchCounts {
  std::int64_t computed = 0, reused = 0;
};

// Contexts that occur more than once are forecast once. Windows of one symbol and target whose
// lengths differ by whole patches begin alike as long as the start of the context stays: these go
// through sessions, each going on where the one before ended, many such chains at a time. The
// others travel in full batches, whatever symbol, target or window they belong to. A batch of
// contexts, or kChainBytes of keys and values, is in memory at a time.
class EngineSource final : public ForecastSource {
 public:
  // All three must outlive this.
  EngineSource(const Engine& engine, const SourceOptions& options, ForecastCache& cache)
      : engine_(engine), options_(options), cache_(cache) {}
  void forecast(std::span<const ForecastRequest> requests,
                std::span<TargetForecast> results) override;
  std::size_t num_computed() const { return num_computed_; }  // contexts given to the engine
  const PatchCounts& patches() const { return patches_; }

 private:
  using Chain = std::vector<std::size_t>;  // requests, each context a beginning of the next one's
  void make_context_of(const ForecastRequest& request, std::vector<float>& context) const;
  std::size_t points_of(const ForecastRequest& request) const;
  // Requests [begin, end) of one symbol: splits off chains, the rest joins the batch.
  void forecast_symbol(std::span<const ForecastRequest> requests, std::size_t begin,
                       std::size_t end);
  void forecast_chains(std::span<const ForecastRequest> requests, std::span<const Chain> chains);
  void compute();
  void keep(std::span<const ContextKey> keys);  // answers_
  void finished(std::size_t count);

  const Engine& engine_;
  const SourceOptions& options_;
  ForecastCache& cache_;
  std::size_t num_computed_ = 0;
  PatchCounts patches_;
  std::vector<ContextKey> keys_;  // of the requests being answered
  std::size_t num_finished_ = 0;  // of them
  // The batch being collected.
  std::vector<Series> batch_;
  std::vector<ContextKey> batch_keys_;
  std::vector<Forecast> answers_;
};

}  // namespace toto::backtest
