#include "shadow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace toto::server {
namespace {

constexpr int kLowestPriority = 19;

// Standard deviation of the values of a variate that a forecast sees.
double spread_of(const Series& series, std::size_t variate, std::size_t max_context) {
  const std::size_t end = (variate + 1) * series.length();
  std::vector<double> values;
  for (std::size_t i = end - std::min(series.length(), max_context); i < end; ++i) {
    const bool counts = series.mask.empty() || series.mask[i] != 0;
    if (counts && !std::isnan(series.values[i])) values.push_back(series.values[i]);
  }
  const double count = std::max(static_cast<double>(values.size()), 1.0);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / count);
}

// The first `steps` of every row of `horizon` values.
std::vector<float> first_steps(const std::vector<float>& rows, int horizon, int steps) {
  std::vector<float> kept;
  for (auto row = rows.begin(); row != rows.end(); row += horizon) {
    kept.insert(kept.end(), row, row + steps);
  }
  return kept;
}

// Adds up |a - b| and |b|.
struct DeviationSums {
  double difference = 0, size = 0, count = 0;
  void add(std::span<const float> a, std::span<const float> b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::abs(static_cast<double>(a[i]) - b[i]);
      size += std::abs(static_cast<double>(b[i]));
      ++count;
    }
  }
};

}  // namespace

double deviation(const Series& series, const Forecast& live, const Forecast& reference,
                 int max_context) {
  const auto horizon = static_cast<std::size_t>(reference.horizon);
  const auto num_variates = static_cast<std::size_t>(reference.num_variates);
  double worst = 0;
  for (std::size_t variate = 0; variate < num_variates; ++variate) {
    DeviationSums sums;
    // Rows of the variate: [variate][step], and [quantile][variate][step].
    const auto add = [&](const std::vector<float>& a, const std::vector<float>& b) {
      for (std::size_t at = variate * horizon; at < b.size(); at += num_variates * horizon) {
        sums.add(std::span(a).subspan(at, horizon), std::span(b).subspan(at, horizon));
      }
    };
    add(live.mean, reference.mean);
    add(live.quantiles, reference.quantiles);
    const double apart = sums.difference / std::max(sums.count, 1.0);
    // NaN or infinity exceeds every bound.
    if (!std::isfinite(apart)) return std::numeric_limits<double>::infinity();
    const double size = sums.size / std::max(sums.count, 1.0) +
                        spread_of(series, variate, static_cast<std::size_t>(max_context));
    worst = std::max(worst, size > 0 ? apart / size : apart);
  }
  return worst;
}

Shadow::Shadow(const ShadowOptions& options, ShadowWork work)
    : options_(options), work_(std::move(work)) {
  state_.enabled = options.rate > 0;
  state_.rate = options.rate;
  state_.bound = options.bound;
  if (state_.enabled) thread_ = std::thread([this] { run(); });
}

void Shadow::offer(const Series& series, const ForecastOptions& options, const Forecast& live,
                   const ActiveEngine& active) {
  if (!state_.enabled || active.engine->options().mode == Mode::reference) return;
  {
    const std::lock_guard lock(mutex_);
    share_ += options_.rate;
    if (share_ < 1) return;
    share_ -= 1;
    if (checks_.size() >= options_.max_waiting) {
      ++state_.dropped;
      return;
    }
    checks_.push_back({series, options, live, active});
    checks_.back().live.samples.clear();
  }
  wake_.notify_one();
}

void Shadow::engine_switched(bool rolled_back) {
  const std::lock_guard lock(mutex_);
  state_.rolled_back = rolled_back;
  state_.last_deviation = state_.worst_deviation = 0;
  checks_.clear();
}

ShadowState Shadow::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Shadow::cancel() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
}

void Shadow::stop() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void Shadow::run() {
  lower_priority(kLowestPriority);
  std::optional<Engine> reference;
  for (;;) {
    ShadowCheck check;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopped_ || !checks_.empty(); });
      if (stopped_) return;
      check = std::move(checks_.front());
      checks_.pop_front();
    }
    // A comparison that fails does not pass.
    double apart = std::numeric_limits<double>::infinity();
    bool given_up = false;
    try {
      if (!reference) reference.emplace(work_.load());
      apart = compare(*reference, check);
    } catch (const Error& error) {
      given_up = error.code() == ErrorCode::cancelled || error.code() == ErrorCode::overloaded;
    } catch (const std::exception&) {
      given_up = false;
    }
    if (stopped_) return;
    if (given_up || !work_.is_current(check.active)) {
      const std::lock_guard lock(mutex_);
      ++state_.dropped;
      continue;
    }
    const bool past = !(apart <= options_.bound);
    {
      const std::lock_guard lock(mutex_);
      ++state_.checked;
      state_.exceeded += past ? 1 : 0;
      state_.last_deviation = apart;
      state_.worst_deviation = std::max(state_.worst_deviation, apart);
    }
    if (past) work_.exceeded(apart, check.series.id, check.active);
  }
}

// Compares only the steps that are computed exactly. Later steps are sampled, and a rounding
// difference in one draw changes the rest of its path. A forecast sampled from its first step on is
// repeated without sampling, on the live engine too.
double Shadow::compare(const Engine& reference, const ShadowCheck& check) const {
  const int horizon = check.options.horizon;
  const int steps = reference.model().facts.exact_steps(horizon);
  Series series = check.series;
  series.future_exogenous = first_steps(series.future_exogenous, horizon, steps);
  ForecastOptions options = check.options;
  options.keep_samples = false;
  options.num_samples = 0;
  options.horizon = steps;
  options.cancelled = [this] { return stopped_.load(); };
  const Forecast exact = reference.forecast(series, options);
  if (check.options.num_samples > 0) {
    return deviation(series, work_.forecast(series, options, check.active), exact,
                     options.max_context);
  }
  Forecast live = check.live;
  live.mean = first_steps(live.mean, horizon, steps);
  live.quantiles = first_steps(live.quantiles, horizon, steps);
  return deviation(series, live, exact, options.max_context);
}

}  // namespace toto::server
