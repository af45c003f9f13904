// Where forecasts come from: the engine, or in tests an oracle.
#pragma once

#include <cstddef>
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
  std::size_t lag = 1;
  ForecastOptions forecast = {};  // horizon and quantiles are set by the source
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

// The quantile levels and the horizon a backtest asks for.
ForecastOptions backtest_options(const SourceOptions& options);

// Everything a forecast depends on besides its context, for the cache: weights, engine, precision,
// instruction set, mode, and every option.
std::string cache_setting(const Engine& engine, const SourceOptions& options);

// Contexts that occur more than once are forecast once; the others travel in full batches, whatever
// symbol, target or window they belong to. At most a batch of contexts is in memory at a time.
class EngineSource final : public ForecastSource {
 public:
  // All three must outlive this.
  EngineSource(const Engine& engine, const SourceOptions& options, ForecastCache& cache)
      : engine_(engine), options_(options), cache_(cache) {}
  void forecast(std::span<const ForecastRequest> requests,
                std::span<TargetForecast> results) override;
  std::size_t num_computed() const { return num_computed_; }  // contexts given to the engine

 private:
  void compute();

  const Engine& engine_;
  const SourceOptions& options_;
  ForecastCache& cache_;
  std::size_t num_computed_ = 0;
  // The batch being collected.
  std::vector<Series> batch_;
  std::vector<ContextKey> batch_keys_;
  std::vector<Forecast> answers_;
};

}  // namespace toto::backtest
