#include "forecast/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "forecast/summary.h"

namespace toto {
namespace {

// How errors name a series.
std::string label_of(const Series& series, int place) {
  if (!series.id.empty()) return fmt::format("series \"{}\"", series.id);
  return place == kByItself ? std::string("the series") : fmt::format("series {}", place);
}

bool is_missing(const Series& series, std::size_t at) { return std::isnan(series.values[at]); }

// The group id of a value: one for all, one per variate, or one per value.
std::int64_t id_at(const Series& series, int variate, std::size_t time) {
  if (series.group_ids.empty()) return 0;
  if (series.group_ids.size() == static_cast<std::size_t>(series.num_variates)) {
    return series.group_ids[variate];
  }
  return series.group_ids[variate * series.length() + time];
}

// Every variate needs a value, and infinities are refused; NaN is a missing value.
void check_values(const Series& series, int place) {
  const std::size_t length = series.length();
  for (int v = 0; v < series.num_variates; ++v) {
    bool any = false;
    for (std::size_t t = 0; t < length; ++t) {
      const float x = series.values[v * length + t];
      if (std::isinf(x)) {
        fail(ErrorCode::invalid_argument,
             "{}: variate {} has an infinite value at step {}; expected finite numbers or NaN for "
             "missing",
             label_of(series, place), v, t);
      }
      any = any || !std::isnan(x);
    }
    if (!any) {
      fail(ErrorCode::invalid_argument, "{}: variate {} has no value, all {} are missing",
           label_of(series, place), v, length);
    }
  }
}

[[noreturn]] void fail_known_future(const Series& series, int place) {
  fail(ErrorCode::invalid_argument, "{}: a known future value is not a finite number",
       label_of(series, place));
}

// The ids of one patch must agree: "Patches cannot span multiple datasets" (embedding.py).
void check_ids(const Series& series, const ContextShape& shape, int patch, int place) {
  if (series.group_ids.size() != series.values.size()) return;
  const int padding = shape.padded(patch) - shape.length;
  for (int v = 0; v < series.num_variates; ++v) {
    for (int t = 1; t < shape.length; ++t) {
      const std::size_t at = shape.first + t;
      if ((t + padding) % patch != 0 && id_at(series, v, at) != id_at(series, v, at - 1)) {
        fail(ErrorCode::invalid_argument,
             "{}: the group id of variate {} changes at step {}, inside a patch of {} steps",
             label_of(series, place), v, at, patch);
      }
    }
  }
}

// The latest value seen and its time step, used to fill the gap after it.
struct Latest {
  float value = NAN;
  double at = 0;
};

// Fills one variate's gaps in place; a gap that cannot be filled becomes 0 with mask 0.
void fill_gaps(std::span<float> x, std::uint8_t* mask, Missing missing, bool keep_marked,
               Latest latest) noexcept {
  std::size_t next = 0;  // the first value after a gap
  for (std::size_t t = 0; t < x.size(); ++t) {
    if (!std::isnan(x[t])) {
      latest = {x[t], static_cast<double>(t)};
    } else if (missing == Missing::mask || std::isnan(latest.value)) {
      x[t] = 0;
      mask[t] = 0;
    } else {
      if (keep_marked) mask[t] = 0;
      next = std::max(next, t);
      while (next < x.size() && std::isnan(x[next])) ++next;
      x[t] = latest.value;
      if (missing == Missing::linear && next < x.size()) {
        const double share =
            (static_cast<double>(t) - latest.at) / (static_cast<double>(next) - latest.at);
        x[t] = static_cast<float>(latest.value +
                                  share * (static_cast<double>(x[next]) - latest.value));
      }
    }
  }
}

// The latest value before the context, and its step counted from the context's first one.
Latest latest_before(const Series& series, int variate, std::size_t first) {
  const std::size_t from = variate * series.length() + first;
  std::size_t distance = 1;
  while (distance <= first && is_missing(series, from - distance)) ++distance;
  if (distance > first) return {};
  return {series.values[from - distance], -static_cast<double>(distance)};
}

// What the scale of one variate depends on.
struct ValueRange {
  double deviation = 0;              // population standard deviation of the observed values
  double smallest = 0, largest = 0;  // magnitudes of what is multiplied, zeros left out
};

ValueRange range_of(const Series& series, int variate, const ContextShape& shape) {
  const std::size_t from = variate * series.length() + shape.first;
  const std::span<const float> values(series.values.data() + from, shape.length);
  const auto observed = [&](std::size_t t) {
    return !std::isnan(values[t]) && (series.mask.empty() || series.mask[from + t] != 0);
  };
  double count = 0, total = 0, squares = 0;
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (!observed(t)) continue;
    count += 1;
    total += values[t];
  }
  const double mean = count > 0 ? total / count : 0;
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (observed(t)) squares += (values[t] - mean) * (values[t] - mean);
  }
  ValueRange range;
  range.deviation = count > 0 ? std::sqrt(squares / count) : 0;
  range.smallest = std::numeric_limits<float>::max();
  const auto add = [&range](float value) {
    const double size = std::fabs(double{value});
    if (!(size > 0)) return;  // NaN as well
    range.smallest = std::min(range.smallest, size);
    range.largest = std::max(range.largest, size);
  };
  for (const float value : values) add(value);
  add(latest_before(series, variate, shape.first).value);
  if (const int x = variate - (series.num_variates - series.num_exogenous);
      x >= 0 && !series.future_exogenous.empty()) {
    const std::size_t horizon = series.future_exogenous.size() / series.num_exogenous;
    for (const float value : std::span(series.future_exogenous).subspan(x * horizon, horizon)) {
      add(value);
    }
  }
  return range;
}

// The smallest power of two, from 2^0 to 2^126, that makes the deviation large enough.
double automatic_scale(const ValueRange& range, double minimum_scale) {
  constexpr double kMost = 0x1p126, kLargest = std::numeric_limits<float>::max();
  const double wanted = kLeastScales * minimum_scale;
  double scale = 1;
  while (range.deviation > 0 && range.deviation * scale < wanted && scale < kMost &&
         range.largest * (2 * scale) <= kLargest) {
    scale *= 2;
  }
  return scale;
}

}  // namespace

void validate_options(const ForecastOptions& options) {
  if (options.horizon < 1 || options.horizon > kMaxHorizon) {
    fail(ErrorCode::invalid_argument, "horizon is {}, expected 1 to {}", options.horizon,
         kMaxHorizon);
  }
  if (options.num_samples < 0 || options.num_samples > kMaxSamples) {
    fail(ErrorCode::invalid_argument, "samples is {}, expected 1 to {}, or 0 for an exact forecast",
         options.num_samples, kMaxSamples);
  }
  if (options.num_paths < 1 || options.num_paths > kMaxSamples) {
    fail(ErrorCode::invalid_argument, "paths is {}, expected 1 to {}", options.num_paths,
         kMaxSamples);
  }
  if (options.max_context < 1) {
    fail(ErrorCode::invalid_argument, "context is {}, expected at least 1 point",
         options.max_context);
  }
  for (const double level : options.quantiles) {
    if (!(level > 0 && level < 1)) {
      fail(ErrorCode::invalid_argument, "quantile {} is outside the open interval (0, 1)", level);
    }
  }
  check_point(options.point);
  if (!(std::isfinite(options.scale) && options.scale >= 0)) {
    fail(ErrorCode::invalid_argument,
         "scale is {}, expected a finite number above 0, or 0 for an automatic scale",
         options.scale);
  }
  if (options.decode == Decode::mean && options.num_samples > 0) {
    fail(ErrorCode::invalid_argument,
         "decode mean follows one path and draws no samples; leave out samples or use decode "
         "sample");
  }
}

void validate_series(const Series& series, int horizon, int place) {
  if (series.num_variates < 1) {
    fail(ErrorCode::invalid_argument, "{} has {} variates, expected at least 1",
         label_of(series, place), series.num_variates);
  }
  const std::size_t variates = series.num_variates;
  // Steps of all variates are indexed by int.
  if (constexpr std::size_t kMost = std::numeric_limits<int>::max(); variates > kMost / horizon) {
    fail(ErrorCode::invalid_argument,
         "{}: {} variates x {} steps are more values than one forecast can hold ({}); forecast "
         "fewer variates at a time",
         label_of(series, place), variates, horizon, kMost);
  }
  if (series.values.empty())
    fail(ErrorCode::invalid_argument, "{} is empty, expected at least one value",
         label_of(series, place));
  if (series.values.size() % variates != 0) {
    fail(ErrorCode::invalid_argument, "{} has {} values, expected a multiple of its {} variates",
         label_of(series, place), series.values.size(), variates);
  }
  const std::size_t size = series.values.size();
  if (!series.mask.empty() && series.mask.size() != size) {
    fail(ErrorCode::invalid_argument, "{}: the mask has {} entries for {} values",
         label_of(series, place), series.mask.size(), size);
  }
  if (!series.group_ids.empty() && series.group_ids.size() != variates &&
      series.group_ids.size() != size) {
    fail(ErrorCode::invalid_argument,
         "{}: {} group ids, expected one per variate ({}) or one per value ({})",
         label_of(series, place), series.group_ids.size(), variates, size);
  }
  if (series.num_exogenous < 0 || series.num_exogenous >= series.num_variates) {
    fail(ErrorCode::invalid_argument,
         "{}: {} of {} variates are exogenous, expected at least one that is not",
         label_of(series, place), series.num_exogenous, variates);
  }
  if (!series.future_exogenous.empty()) {
    const std::size_t expected = std::size_t(series.num_exogenous) * horizon;
    if (series.future_exogenous.size() != expected) {
      fail(ErrorCode::invalid_argument,
           "{}: {} known future values, expected {} variates x {} steps", label_of(series, place),
           series.future_exogenous.size(), series.num_exogenous, horizon);
    }
    for (const float x : series.future_exogenous) {
      if (std::isinf(x)) fail_known_future(series, place);
    }
  }
  check_values(series, place);
}

// A model whose block is fixed, or that samples, has no choice of a block.
void validate_for(const ModelFacts& facts, const ForecastOptions& options) {
  static const ForecastOptions usual;  // its list of levels is allocated once
  const bool raw = options.min_observed != usual.min_observed || options.cap != usual.cap;
  if (facts.levels.empty() && (raw || options.strict_quantiles)) {
    fail(ErrorCode::invalid_argument,
         "{} applies to models with quantile outputs, such as Toto 2.0; this model is {}",
         raw ? "raw (min_observed and cap)" : "strict_quantiles", facts.architecture);
  }
  for (const double level : options.quantiles) {
    if (!options.strict_quantiles) break;
    if (level >= facts.levels.front() && level <= facts.levels.back()) continue;
    fail(ErrorCode::invalid_argument,
         "quantile {} is beyond the model's own levels, {} to {}; leave out strict_quantiles to "
         "extrapolate it",
         level, facts.levels.front(), facts.levels.back());
  }
  if (!facts.can_sample && options.num_paths != kDefaultPaths) {
    fail(ErrorCode::invalid_argument,
         "paths is {}, but this model predicts the quantiles of every step and simulates no paths; "
         "leave out paths",
         options.num_paths);
  }
  if (options.block == 0) return;
  if (facts.block != 0) {
    fail(ErrorCode::invalid_argument,
         "block is {}, but a pass of this model always forecasts {} steps; leave out block",
         options.block, facts.block);
  }
  if (options.block < 0 || options.block % facts.patch != 0) {
    fail(ErrorCode::invalid_argument,
         "block is {}, expected 0 (the whole horizon) or a multiple of the patch of {} steps",
         options.block, facts.patch);
  }
}

void validate_for(const ModelFacts& facts, const Series& series, int place) {
  if (!facts.reads_gaps) {
    for (const float x : series.future_exogenous) {
      if (std::isnan(x)) fail_known_future(series, place);
    }
    return;
  }
  for (int v = 0; v < series.num_variates; ++v) {
    for (std::size_t t = 0; t < series.length(); ++t) {
      if (id_at(series, v, t) == kNoPatch) {
        fail(ErrorCode::invalid_argument,
             "{}: the group id of variate {} is {}, which means a missing patch to this model; use "
             "another number",
             label_of(series, place), v, kNoPatch);
      }
      if (id_at(series, v, t) != id_at(series, v, 0)) {
        fail(ErrorCode::invalid_argument,
             "{}: the group id of variate {} changes at step {}; this model has one id per variate",
             label_of(series, place), v, t);
      }
      if (series.group_ids.size() != series.values.size()) break;
    }
  }
}

std::int64_t last_id(const Series& series, int variate) noexcept {
  return id_at(series, variate, series.length() - 1);
}

bool is_known(const Series& series, int variate) noexcept {
  return !series.future_exogenous.empty() && variate >= series.num_variates - series.num_exogenous;
}

KnownFuture known_future(const Series& series, int variate, double factor) noexcept {
  if (!is_known(series, variate)) return {};
  const std::size_t horizon = series.future_exogenous.size() / series.num_exogenous;
  const int x = variate - (series.num_variates - series.num_exogenous);
  return {std::span(series.future_exogenous).subspan(x * horizon, horizon), factor};
}

ContextShape context_shape(const Series& series, int max_context, const ModelFacts& facts,
                           int place) {
  const int patch = facts.patch;
  const std::size_t length = series.length();
  ContextShape shape;
  shape.first = length > static_cast<std::size_t>(max_context) ? length - max_context : 0;
  // With an explicit mask the caller defines the layout: nothing is dropped.
  const auto nothing_yet = [&series, length](std::size_t t) {
    for (int v = 0; v < series.num_variates; ++v) {
      if (!is_missing(series, v * length + t)) return false;
    }
    return true;
  };
  if (series.mask.empty()) {
    std::size_t first_value = 0;
    while (first_value + 1 < length && nothing_yet(first_value)) ++first_value;
    shape.first = std::max(shape.first, first_value);
  }
  const std::size_t used = length - shape.first;
  const std::size_t patches = (used + patch - 1) / patch;
  if (patches > static_cast<std::size_t>(facts.max_patches)) {
    fail(
        ErrorCode::invalid_argument,
        "{}: a context of {} points is {} patches, at most {} are supported; use a shorter context",
        label_of(series, place), used, patches, facts.max_patches);
  }
  shape.length = static_cast<int>(used);
  shape.num_patches = static_cast<int>(patches);
  shape.reads_gaps = facts.reads_gaps;
  check_ids(series, shape, patch, place);
  return shape;
}

void choose_scale(const Series& series, const ContextShape& shape, const ForecastOptions& options,
                  const ModelFacts& facts, std::span<double> scale, int place) {
  for (int v = 0; v < series.num_variates; ++v) {
    scale[v] = options.scale;
    if (options.scale == 1) continue;
    const ValueRange range = range_of(series, v, shape);
    if (options.scale == 0) {
      scale[v] = automatic_scale(range, facts.minimum_scale);
      continue;
    }
    for (const double size : {range.largest, range.smallest}) {
      const auto scaled = static_cast<float>(size * options.scale);
      if (size == 0 || range.largest == 0 || (std::isfinite(scaled) && scaled > 0)) continue;
      fail(
          ErrorCode::corrupt_file,
          "{}: variate {} has a value of {:g}, which the scale {:g} takes to {:g}, out of float32; "
          "choose a scale nearer to 1, or auto",
          label_of(series, place), v, size, options.scale, size * options.scale);
    }
  }
}

void write_context(const Series& series, const ContextShape& shape, Missing missing,
                   std::span<const double> scale, int patch, std::size_t stride, float* values,
                   std::uint8_t* mask, std::int64_t* ids) noexcept {
  const std::size_t length = series.length();
  const int padded = shape.padded(patch), padding = padded - shape.length;
  for (int v = 0; v < series.num_variates; ++v) {
    float* x = values + std::size_t(v) * stride;
    std::uint8_t* m = mask + std::size_t(v) * padded;
    const std::size_t from = v * length + shape.first;
    std::fill_n(x, padding, 0.0f);
    std::fill_n(m, padding, std::uint8_t{0});
    std::copy_n(series.values.data() + from, shape.length, x + padding);
    if (series.mask.empty()) {
      std::fill_n(m + padding, shape.length, std::uint8_t{1});
    } else {
      std::transform(series.mask.begin() + std::ptrdiff_t(from),
                     series.mask.begin() + std::ptrdiff_t(from) + shape.length, m + padding,
                     [](std::uint8_t flag) { return static_cast<std::uint8_t>(flag != 0); });
    }
    fill_gaps({x + padding, static_cast<std::size_t>(shape.length)}, m + padding, missing,
              shape.reads_gaps, latest_before(series, v, shape.first));
    if (shape.reads_gaps && !is_known(series, v)) {
      std::fill_n(m + padded - patch, patch, std::uint8_t{1});
    }
    if (scale[v] != 1) {
      std::transform(x + padding, x + padded, x + padding,
                     [factor = scale[v]](float value) { return scaled(value, factor); });
    }
    for (int p = 0; p < shape.num_patches; ++p) {
      const int last = (p + 1) * patch - 1 - padding;  // the last step of a patch is never padding
      std::int64_t& id = ids[std::size_t(v) * shape.num_patches + p];
      id = id_at(series, v, shape.first + last);
      const std::uint8_t* first = m + std::size_t(p) * patch;
      if (shape.reads_gaps && std::count(first, first + patch, 0) == patch) id = kNoPatch;
    }
  }
}

}  // namespace toto
