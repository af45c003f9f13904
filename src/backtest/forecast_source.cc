#include "backtest/forecast_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace toto::backtest {
namespace {

// Enough to fill every pass of the network, few enough that an interrupt loses little.
constexpr std::size_t kBatch = 256;
// Keys and values of the chains that advance together.
constexpr std::size_t kChainBytes = std::size_t{192} << 20;

}  // namespace

SourceOptions source_options(const BacktestSpec& spec, std::size_t lag) {
  SourceOptions options{.transform = spec.transform, .lag = lag};
  options.forecast.max_context = spec.context;
  options.forecast.num_samples = spec.samples;
  options.forecast.point = spec.chosen_point();
  options.forecast.scale = spec.scale;
  options.forecast.seed = spec.seed;
  return options;
}

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
      "version {}\nweights {}\nconfig {}\nmode {}\ndtype {}\nisa {}\nkv_cache {}\nhorizon "
      "{}\nmax_context "
      "{}\nsamples {}\npaths {}\ndecode {}\nmissing {}\npoint {}\nscale {}\nseed {}\nindependent {}\nlevels {}",
      version(), engine.model().weights_sha256, engine.model().config_sha256,
      name_of(engine_options.mode), name_of(engine_options.dtype), name_of(engine_options.isa),
      engine_options.use_kv_cache, forecast.horizon, forecast.max_context, forecast.num_samples,
      forecast.num_paths, static_cast<int>(forecast.decode), static_cast<int>(forecast.missing),
      name_of(forecast.point), forecast.scale, forecast.seed, forecast.independent_streams,
      forecast.quantiles.size());
}

EngineSource::ContextSpan EngineSource::span_of(const TargetRequest& request) const {
  const std::size_t points = num_points(options_.transform, request.decision, options_.lag);
  const std::size_t start =
      context_start(points, static_cast<std::size_t>(options_.forecast.max_context));
  return {start, points - start};
}

void EngineSource::make_context_of(const TargetRequest& request,
                                   std::vector<float>& context) const {
  make_context(options_.transform, *request.bars, request.target, request.decision, options_.lag,
               static_cast<std::size_t>(options_.forecast.max_context), context);
}

void EngineSource::finished(std::size_t count) {
  num_finished_ += count;
  if (options_.progress) options_.progress(num_finished_, keys_.size());
}

void EngineSource::forecast(std::span<const TargetRequest> requests,
                            std::span<TargetForecast> results) {
  keys_.assign(requests.size(), {});
  num_finished_ = 0;
  for (std::size_t begin = 0; begin < requests.size();) {
    std::size_t end = begin + 1;
    while (end < requests.size() && requests[end].bars == requests[begin].bars) ++end;
    forecast_symbol(requests, begin, end);
    begin = end;
  }
  compute();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const RawForecast& raw = *cache_.find(keys_[i]);
    const double close = requests[i].bars->close[requests[i].decision];
    const auto mapped = [&](float value) { return to_price(options_.transform, value, close); };
    results[i].point = mapped(raw[0]);
    for (std::size_t q = 0; q < kNumLevels; ++q) results[i].quantiles[q] = mapped(raw[q + 1]);
  }
}

double EngineSource::probability_up(const TargetRequest& request) {
  constexpr std::size_t kLevels = 255;  // 4 rounds of 256 parts: 2e-10
  constexpr double kNear = 1e-9;
  std::vector<Series> series(1);
  make_context_of(request, series[0].values);
  ForecastOptions options = backtest_options(options_);
  const double last = request.bars->close[request.decision];
  const double threshold =
      options_.transform == Transform::price ? static_cast<double>(static_cast<float>(last)) : 0;
  // The share of the distribution at or below the threshold is between these.
  double low = 0, high = 1;
  std::vector<Forecast> answers;
  while (high - low > kNear) {
    options.quantiles.resize(kLevels);
    const double part = (high - low) / (kLevels + 1);
    for (std::size_t i = 0; i < kLevels; ++i) {
      options.quantiles[i] = low + part * static_cast<double>(i + 1);
    }
    engine_.forecast_into(std::span<const Series>(series), options, answers);
    ++num_computed_;
    std::size_t below = 0;
    while (below < kLevels && answers[0].quantiles[(below + 1) * options_.lag - 1] <= threshold) {
      ++below;
    }
    high = below == kLevels ? high : options.quantiles[below];
    low = below == 0 ? low : options.quantiles[below - 1];
  }
  return 1 - (low + high) / 2;
}

void EngineSource::forecast_symbol(std::span<const TargetRequest> requests, std::size_t begin,
                                   std::size_t end) {
  const auto patch = static_cast<std::size_t>(engine_.model().facts.patch);
  const bool can_reuse = options_.reuse_prefixes && engine_.options().mode != Mode::reference;
  // One chain for each first point, target and remainder of the length.
  std::map<std::tuple<std::size_t, tables::Target, std::size_t>, Chain> found_chains;
  std::unordered_set<ContextKey, ContextKey::Hash> waiting(batch_keys_.begin(), batch_keys_.end());
  std::vector<float> context;
  std::vector<std::size_t> alone;
  std::size_t found = 0;
  for (std::size_t i = begin; i < end; ++i) {
    make_context_of(requests[i], context);
    keys_[i] = key_of(context);
    if (cache_.find(keys_[i]) != nullptr || !waiting.insert(keys_[i]).second) {
      ++found;
      continue;
    }
    const auto [start, length] = span_of(requests[i]);
    if (can_reuse) {
      found_chains[{start, requests[i].target, length % patch}].push_back(i);
    } else {
      alone.push_back(i);
    }
  }
  finished(found);
  std::vector<Chain> chains;
  for (auto& [key, chain] : found_chains) {
    if (chain.size() == 1) {
      alone.push_back(chain.front());
      continue;
    }
    std::ranges::sort(chain, {}, [&](std::size_t i) { return requests[i].decision; });
    chains.push_back(std::move(chain));
  }
  for (const std::size_t i : alone) {
    make_context_of(requests[i], batch_.emplace_back().values);
    batch_keys_.push_back(keys_[i]);
    patches_.computed +=
        static_cast<std::int64_t>((batch_.back().values.size() + patch - 1) / patch);
    if (batch_.size() == kBatch) compute();
  }

  // As many chains at a time as fit; the last context of a chain is its longest.
  const std::size_t patch_bytes = engine_.model().facts.cache_bytes_per_patch;
  for (std::span<const Chain> rest(chains); !rest.empty();) {
    std::size_t count = 0, bytes = 0;
    while (count < std::min(rest.size(), kBatch) && (count == 0 || bytes <= kChainBytes)) {
      bytes += patch_bytes * (span_of(requests[rest[count].back()]).length / patch + 1);
      ++count;
    }
    forecast_chains(requests, rest.first(count));
    rest = rest.subspan(count);
  }
}

void EngineSource::forecast_chains(std::span<const TargetRequest> requests,
                                   std::span<const Chain> chains) {
  // No limit: no point of a context may be dropped.
  constexpr SessionOptions kUnlimited{.max_bytes = std::numeric_limits<std::size_t>::max(),
                                      .max_length = std::numeric_limits<std::size_t>::max()};
  std::size_t longest = 0;
  for (const Chain& chain : chains) longest = std::max(longest, chain.size());
  std::vector<Session> sessions;
  sessions.reserve(chains.size());
  std::vector<Session*> active;
  std::vector<ContextKey> active_keys;
  std::vector<float> context;
  for (std::size_t link = 0; link < longest; ++link) {
    active.clear();
    active_keys.clear();
    for (std::size_t c = 0; c < chains.size(); ++c) {
      if (link >= chains[c].size()) continue;
      const std::size_t request = chains[c][link];
      make_context_of(requests[request], context);
      if (link == 0) {
        Series series;
        series.values = context;
        sessions.push_back(engine_.open(std::move(series), kUnlimited));
      } else {
        sessions[c].append(std::span(context).subspan(sessions[c].series().length()));
      }
      active.push_back(&sessions[c]);
      active_keys.push_back(keys_[request]);
    }
    engine_.forecast_into(active, backtest_options(options_), answers_);
    keep(active_keys);
    finished(active.size());
  }
  for (const Session& session : sessions) {
    patches_.computed += session.stats().patches_computed;
    patches_.reused += session.stats().patches_reused;
  }
}

void EngineSource::compute() {
  if (batch_.empty()) return;
  engine_.forecast_into(std::span<const Series>(batch_), backtest_options(options_), answers_);
  keep(batch_keys_);
  finished(batch_.size());
  batch_.clear();
  batch_keys_.clear();
}

void EngineSource::keep(std::span<const ContextKey> keys) {
  const std::size_t last = options_.lag - 1;
  std::vector<std::pair<ContextKey, RawForecast>> entries;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto& [key, raw] = entries.emplace_back();
    key = keys[i];
    raw[0] = answers_[i].point[last];
    for (std::size_t q = 0; q < kNumLevels; ++q) {
      raw[q + 1] = answers_[i].quantiles[q * options_.lag + last];
    }
  }
  cache_.add(entries);
  num_computed_ += keys.size();
}

}  // namespace toto::backtest
