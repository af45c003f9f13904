// The source of forecasts: the engine, or an oracle in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backtest/backtest_spec.h"
#include "backtest/forecast_cache.h"
#include "toto/toto.h"

namespace toto::backtest {

// A forecast of one target, from the bars up to and including `decision`.
struct TargetRequest {
  const tables::Bars* bars = nullptr;
  std::size_t decision = 0;
  tables::Target target = tables::Target::close;
};

class ForecastSource {
 public:
  ForecastSource() = default;
  ForecastSource(const ForecastSource&) = delete;
  ForecastSource& operator=(const ForecastSource&) = delete;
  virtual ~ForecastSource() = default;
  // results[i] answers requests[i], in prices.
  virtual void forecast(std::span<const TargetRequest> requests,
                        std::span<TargetForecast> results) = 0;
  // The probability that the price of the target bar is above the last close, from the whole
  // distribution; NaN for a source that has none.
  virtual double probability_up(const TargetRequest&) { return kUndefined; }
};

struct SourceOptions {
  Transform transform = Transform::pct;
  std::size_t lag = 1;
  bool reuse_prefixes = true;     // the bits do not depend on it
  ForecastOptions forecast = {};  // horizon and quantiles are set by the source
  std::function<void(std::size_t done, std::size_t total)> progress = {};
};

// Those of a run whose decisions are `lag` bars before their target.
SourceOptions source_options(const BacktestSpec& spec, std::size_t lag);

// The quantile levels and the horizon a backtest asks for.
ForecastOptions backtest_options(const SourceOptions& options);

// Everything a forecast depends on besides its context, for the cache: weights and config.json of
// the model, engine, precision, instruction set, mode, and every option.
std::string cache_setting(const Engine& engine, const SourceOptions& options);

// Patches of all contexts: computed by the network, and reused from a shorter context.
struct PatchCounts {
  std::int64_t computed = 0, reused = 0;
};

// Equal contexts are forecast once. Windows of one symbol and target that begin with the same point
// and whose lengths differ by whole patches share their beginning: they form a chain of sessions,
// each continuing the one before, and many chains advance together. All other contexts are batched
// across symbols, targets and windows.
// Memory holds one batch of contexts, or kChainBytes of keys and values.
class EngineSource final : public ForecastSource {
 public:
  // All three must outlive this.
  EngineSource(const Engine& engine, const SourceOptions& options, ForecastCache& cache)
      : engine_(engine), options_(options), cache_(cache) {}
  void forecast(std::span<const TargetRequest> requests,
                std::span<TargetForecast> results) override;
  // By bisection on the exact quantiles, to 1e-9.
  double probability_up(const TargetRequest& request) override;
  std::size_t num_computed() const { return num_computed_; }  // contexts given to the engine
  const PatchCounts& patches() const { return patches_; }

 private:
  using Chain = std::vector<std::size_t>;  // requests, each context a beginning of the next one's
  void make_context_of(const TargetRequest& request, std::vector<float>& context) const;
  // Of the context: its first point, counted from the file's first, and its length.
  struct ContextSpan {
    std::size_t start, length;
  };
  ContextSpan span_of(const TargetRequest& request) const;
  // Requests [begin, end) of one symbol: splits off chains, the rest joins the batch.
  void forecast_symbol(std::span<const TargetRequest> requests, std::size_t begin, std::size_t end);
  void forecast_chains(std::span<const TargetRequest> requests, std::span<const Chain> chains);
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
