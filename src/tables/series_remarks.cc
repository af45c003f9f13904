#include "tables/series_remarks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::tables {
namespace {

std::string named(std::string_view id, std::size_t count) {
  if (id.empty()) return count == 1 ? "the series" : fmt::format("{} series", count);
  if (count == 1) return fmt::format("the series {}", quoted(id));
  return fmt::format("the series {} and {} more", quoted(id), count - 1);
}

// Sample standard deviation, without missing values.
double deviation_of(std::span<const float> values) {
  double count = 0, total = 0, squares = 0;
  for (const float value : values) {
    if (std::isnan(value)) continue;
    count += 1;
    total += value;
  }
  const double mean = total / count;
  for (const float value : values) {
    if (!std::isnan(value)) squares += (value - mean) * (value - mean);
  }
  return count > 1 ? std::sqrt(squares / (count - 1)) : 0;
}

// One value, written with the rounding of float32. `values` has at least one that is not missing.
bool is_constant(std::span<const float> values) {
  constexpr float kHuge = std::numeric_limits<float>::infinity();
  float low = kHuge, high = -kHuge;
  for (const float value : values) {  // NaN compares false
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  const double size = std::max(std::abs(double{low}), std::abs(double{high}));
  return double{high} - double{low} <= 2 * size * std::numeric_limits<float>::epsilon();
}

std::string_view filled_how(Missing missing) {
  switch (missing) {
    case Missing::ffill:
      return "filled with the previous value; --missing linear interpolates, mask ignores";
    case Missing::linear:
      return "interpolated; --missing ffill repeats the previous value, mask ignores";
    case Missing::mask:
      return "ignored; --missing ffill repeats the previous value, linear interpolates";
  }
  return "?";
}

}  // namespace

std::vector<std::string> model_warnings(const ModelInfo& model, std::string_view name) {
  std::vector<std::string> warnings = model.warnings;
  if (!model.trained) {
    warnings.push_back(fmt::format(
        "the model {} is untrained: its weights are random and its forecasts meaningless", name));
  }
  return warnings;
}

void SeriesRemarks::Tally::merge(Tally other,
                                 const std::function<std::string(std::string)>& id_of) {
  if (count == 0 && other.count > 0) id = id_of(std::move(other.id));
  count += other.count;
}

std::string SeriesRemarks::Tally::text() const { return named(id, count); }

void SeriesRemarks::add(std::string_view id, std::span<const float> values, std::size_t dropped) {
  std::size_t leading = 0;
  while (leading < values.size() && std::isnan(values[leading])) ++leading;
  if (leading == values.size()) return;  // the engine refuses it
  values = values.subspan(leading);
  leading += dropped;
  if (leading > 0) leading_.add(id);
  num_leading_ += leading;
  if (!context_given_ && values.size() > max_context_) {
    if (cut_.count == 0) cut_length_ = values.size();
    cut_.add(id);
  }
  const std::span<const float> context = values.last(std::min(values.size(), max_context_));
  std::size_t missing = 0;
  for (const float value : context) missing += std::isnan(value) ? 1 : 0;
  if (missing > 0) filled_.add(id);
  num_filled_ += missing;
  if (missing == context.size()) return;
  if (is_constant(context)) {
    constant_.add(id);
    return;
  }
  if (!scale_is_fixed_) return;
  const double deviation = deviation_of(context);
  if (deviations_.empty() || deviation < least_) {
    least_ = deviation;
    narrowest_id_ = id;
  }
  deviations_.push_back(deviation);
}

void SeriesRemarks::merge(SeriesRemarks other,
                          const std::function<std::string(std::string)>& id_of) {
  if (cut_.count == 0) cut_length_ = other.cut_length_;
  cut_.merge(std::move(other.cut_), id_of);
  leading_.merge(std::move(other.leading_), id_of);
  num_leading_ += other.num_leading_;
  filled_.merge(std::move(other.filled_), id_of);
  num_filled_ += other.num_filled_;
  constant_.merge(std::move(other.constant_), id_of);
  if (!other.deviations_.empty() && (deviations_.empty() || other.least_ < least_)) {
    least_ = other.least_;
    narrowest_id_ = id_of(std::move(other.narrowest_id_));
  }
  deviations_.insert(deviations_.end(), other.deviations_.begin(), other.deviations_.end());
}

std::vector<std::string> SeriesRemarks::about_data() const {
  std::vector<std::string> sentences;
  if (cut_.count > 0) {
    sentences.push_back(
        fmt::format("the latest {} of {} values are used of {}; --context N uses more",
                    max_context_, cut_length_, cut_.text()));
  }
  if (leading_.count > 0) {
    sentences.push_back(
        fmt::format("leading missing values are dropped: {} of {}", num_leading_, leading_.text()));
  }
  if (filled_.count > 0) {
    sentences.push_back(fmt::format("{} missing value{} of {} {} {}", num_filled_,
                                    num_filled_ == 1 ? "" : "s", filled_.text(),
                                    num_filled_ == 1 ? "is" : "are", filled_how(missing_)));
  }
  if (constant_.count > 0) {
    sentences.push_back(fmt::format(
        "{} {} always the same value: there is nothing to forecast, and the width of the bands is "
        "the model's guess, not a property of the data",
        constant_.text(), constant_.count == 1 ? "has" : "have"));
  }
  return sentences;
}

std::vector<std::string> SeriesRemarks::about_model(const ModelFacts& facts,
                                                    const ForecastOptions& options) const {
  constexpr double kFarBelow = 3;  // of the minimum scale: bands up to three times too wide pass
  std::vector<std::string> sentences;
  const double scale = options.scale, minimum = facts.minimum_scale;
  const auto num_flat = static_cast<std::size_t>(
      std::count_if(deviations_.begin(), deviations_.end(),
                    [&](double deviation) { return deviation * scale < minimum / kFarBelow; }));
  if (num_flat > 0) {
    const double least = least_ * scale;
    sentences.push_back(fmt::format(
        "{} {} by little (standard deviation {:.3g}{}), and the model scales no series by less than "
        "{:.3g}: it sees a flat line, and bands come out up to {:.2g} times too wide; --scale auto "
        "avoids that",
        named(narrowest_id_, num_flat), num_flat == 1 ? "varies" : "vary", least_,
        scale == 1 ? "" : fmt::format(", times the scale {:g}", scale), minimum,
        std::hypot(least, minimum) / least));
  }
  const int exact = facts.exact_steps(options.horizon);
  if (facts.can_sample && exact < options.horizon && options.decode == Decode::mean) {
    sentences.push_back(fmt::format(
        "--decode mean: from step {} on the bands hold only if the means before them come true, "
        "and are far too narrow; leave it out for bands to rely on",
        exact + 1));
  }
  const auto beyond = std::ranges::find_if(options.quantiles, [&](double level) {
    return !facts.levels.empty() && (level < facts.levels.front() || level > facts.levels.back());
  });
  if (beyond != options.quantiles.end()) {
    sentences.push_back(fmt::format(
        "the model predicts quantiles from {} to {}; {} is extrapolated by an exponential tail, and "
        "--strict-quantiles refuses it",
        facts.levels.front(), facts.levels.back(), *beyond));
  }
  return sentences;
}

}  // namespace toto::tables
