#include "backtest/forecast_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace toto::backtest {
namespace {

// Enough that every pass of the network is full, few enough that little is lost by an interrupt.
constexpr std::size_t kBatch = 256;

}  // namespace

ForecastOptions backtest_options(const SourceOptions& options) {
  ForecastOptions result = options.forecast;
  result.horizon = static_cast<int>(options.lag);
  result.quantiles.clear();
  for (std::size_t i = 0; i < kNumLevels; ++i) result.quantiles.push_back(level(i));
  return result;
}

std::string cache_setting(const Engine& engine, const SourceOptions& options) {
  const ForecastOptions forecast = backtest_options(options);
  const EngineOptions& engine_options = engine.options();
  return fmt::format(
      "version {}\nweights {}\nmode {}\ndtype {}\nisa {}\nkv_cache {}\nhorizon {}\nmax_context "
      "{}\nsamples {}\ndecode {}\nmissing {}\npoint {}\nseed {}\nindependent {}\nlevels {}",
      version(), engine.model().weights_sha256, name_of(engine_options.mode),
      name_of(engine_options.dtype), name_of(engine_options.isa), engine_options.use_kv_cache,
      forecast.horizon, forecast.max_context, forecast.num_samples,
      static_cast<int>(forecast.decode), static_cast<int>(forecast.missing),
      name_of(forecast.point), forecast.seed, forecast.independent_streams,
      forecast.quantiles.size());
}

void EngineSource::forecast(std::span<const ForecastRequest> requests,
                            std::span<TargetForecast> results) {
  std::vector<ContextKey> keys(requests.size());
  std::vector<float> context;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ForecastRequest& request = requests[i];
    make_context(options_.transform, request.bars->prices(request.target), request.decision,
                 options_.lag, static_cast<std::size_t>(options_.forecast.max_context), context);
    keys[i] = key_of(context);
    const bool waits =
        std::find(batch_keys_.begin(), batch_keys_.end(), keys[i]) != batch_keys_.end();
    if (!waits && cache_.find(keys[i]) == nullptr) {
      batch_keys_.push_back(keys[i]);
      batch_.emplace_back().values = context;
    }
    const bool last = i + 1 == requests.size();
    if (batch_.size() == kBatch || last) compute();
    if (options_.progress && (i % kBatch == 0 || last)) options_.progress(i + 1, requests.size());
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const RawForecast& raw = *cache_.find(keys[i]);
    const double price = requests[i].bars->prices(requests[i].target)[requests[i].decision];
    const auto mapped = [&](float value) { return to_price(options_.transform, value, price); };
    results[i].point = mapped(raw[0]);
    for (std::size_t q = 0; q < kNumLevels; ++q) results[i].quantiles[q] = mapped(raw[q + 1]);
  }
}

void EngineSource::compute() {
  if (batch_.empty()) return;
  const ForecastOptions forecast = backtest_options(options_);
  engine_.forecast_into(batch_, forecast, answers_);
  const auto horizon = static_cast<std::size_t>(forecast.horizon);
  std::vector<std::pair<ContextKey, RawForecast>> entries;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    auto& [key, raw] = entries.emplace_back();
    key = batch_keys_[i];
    raw[0] = answers_[i].point[horizon - 1];
    for (std::size_t q = 0; q < kNumLevels; ++q) {
      raw[q + 1] = answers_[i].quantiles[q * horizon + horizon - 1];
    }
  }
  cache_.add(entries);
  num_computed_ += batch_.size();
  batch_.clear();
  batch_keys_.clear();
}

}  // namespace toto::backtest
