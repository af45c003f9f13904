#include "cli/forecast/forecast_remarks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::cli {
namespace {

std::string and_more(std::string_view id, std::size_t count) {
  if (count == 1) return fmt::format("the series {}", quoted(id));
  return fmt::format("the series {} and {} more", quoted(id), count - 1);
}

// The part of a series that the model sees, without missing values, which change the deviation
// little.
double deviation_of(const tables::InputSeries& series, int max_context) {
  const std::span<const float> values = series.values;
  const std::size_t length = std::min(values.size(), static_cast<std::size_t>(max_context));
  double count = 0, mean = 0, squares = 0;
  for (const float value : values.last(length)) {
    if (std::isnan(value)) continue;
    count += 1;
    const double distance = value - mean;
    mean += distance / count;
    squares += distance * (value - mean);
  }
  const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  // One constant, written with the rounding of float32.
  return deviation > std::abs(mean) * std::numeric_limits<float>::epsilon() ? deviation : 0;
}

}  // namespace

void ForecastRemarks::add(const tables::InputSeries& series) {
  const std::size_t length = series.values.size();
  if (request_.cuts_by_default && length > static_cast<std::size_t>(request_.options.max_context) &&
      num_cut_++ == 0) {
    cut_length_ = length;
    cut_id_ = series.id;
  }
  const double deviation = deviation_of(series, request_.options.max_context);
  if (deviation == 0) {
    if (num_constant_++ == 0) constant_id_ = series.id;
    return;
  }
  if (deviations_.empty() || deviation < least_) {
    least_ = deviation;
    narrowest_id_ = series.id;
  }
  deviations_.push_back(deviation);
}

void ForecastRemarks::add_lone_variate(const tables::InputData& input) {
  if (num_lone_++ > 0) return;
  lone_file_ = input.name;
  lone_id_ = input.series.front().id;
  lone_has_columns_ = !input.time_name.empty();
}

void ForecastRemarks::merge(ForecastRemarks file,
                            const std::function<std::string(std::string)>& id_of) {
  if (num_cut_ == 0 && file.num_cut_ > 0) {
    cut_length_ = file.cut_length_;
    cut_id_ = id_of(file.cut_id_);
  }
  num_cut_ += file.num_cut_;
  if (!file.deviations_.empty() && (deviations_.empty() || file.least_ < least_)) {
    least_ = file.least_;
    narrowest_id_ = id_of(file.narrowest_id_);
  }
  if (num_constant_ == 0 && file.num_constant_ > 0) constant_id_ = id_of(file.constant_id_);
  num_constant_ += file.num_constant_;
  deviations_.insert(deviations_.end(), file.deviations_.begin(), file.deviations_.end());
  if (num_lone_ == 0 && file.num_lone_ > 0) {
    lone_file_ = std::move(file.lone_file_);
    lone_id_ = std::move(file.lone_id_);
    lone_has_columns_ = file.lone_has_columns_;
  }
  num_lone_ += file.num_lone_;
}

// Several files are told apart by the ids.
std::string ForecastRemarks::about_file() const {
  return request_.several_files() ? "" : request_.files.front().name() + ": ";
}

std::optional<std::string> ForecastRemarks::context() const {
  if (num_cut_ == 0) return {};
  return fmt::format("{}the latest {} of {} values are used of {}; --context N uses more",
                     about_file(), request_.options.max_context, cut_length_,
                     and_more(cut_id_, num_cut_));
}

std::optional<std::string> ForecastRemarks::multivariate() const {
  if (num_lone_ == 0) return {};
  return fmt::format(
      "--multivariate changes nothing{}: {} has one series, {}, and no other for it to look at{}",
      num_lone_ == 1 ? "" : fmt::format(" for {} files", num_lone_), lone_file_, quoted(lone_id_),
      lone_has_columns_ ? "; --columns A,B names the columns to read" : "");
}

std::optional<std::string> ForecastRemarks::constant() const {
  if (num_constant_ == 0) return {};
  return fmt::format(
      "{}{} {} always the same value: there is nothing to forecast, and the width of the bands is "
      "the model's guess, not a property of the data",
      about_file(), and_more(constant_id_, num_constant_), num_constant_ == 1 ? "has" : "have");
}

std::optional<std::string> ForecastRemarks::sampled(const ModelInfo& model) const {
  const ForecastOptions& options = request_.options;
  const int exact = exact_steps(options, model.facts);
  if (exact == options.horizon || options.num_samples > 0) return {};
  return fmt::format(
      "exact up to step {}; later steps come from {} sampled paths: the median is steadier than "
      "the "
      "mean, and --samples N draws more",
      exact, planned_paths(options, model.facts));
}

std::optional<std::string> ForecastRemarks::tails(const ModelInfo& model) const {
  const std::vector<double>& levels = model.facts.levels;
  if (levels.empty()) return {};
  const auto asked = std::span(request_.options.quantiles).first(request_.num_quantiles);
  const auto beyond = std::ranges::find_if(
      asked, [&](double level) { return level < levels.front() || level > levels.back(); });
  if (beyond == asked.end()) return {};
  return fmt::format(
      "the model predicts quantiles from {} to {}; {} is extrapolated by an exponential tail, and "
      "--strict-quantiles refuses it",
      levels.front(), levels.back(), *beyond);
}

std::optional<std::string> ForecastRemarks::mean_path(const ModelInfo& model) const {
  const ForecastOptions& options = request_.options;
  const int exact = model.facts.exact_steps(options.horizon);
  if (!model.facts.can_sample || exact == options.horizon || options.decode != Decode::mean) {
    return {};
  }
  return fmt::format(
      "--decode mean: from step {} on the bands hold only if the means before them come true, and "
      "are far too narrow; leave it out for bands to rely on",
      exact + 1);
}

std::optional<std::string> ForecastRemarks::scale(const ModelInfo& model) const {
  constexpr double kFarBelow = 3;  // of the minimum scale: bands up to three times too wide pass
  const auto count = static_cast<std::size_t>(std::count_if(
      deviations_.begin(), deviations_.end(),
      [&](double deviation) { return deviation < model.facts.minimum_scale / kFarBelow; }));
  if (count == 0) return {};
  const double factor = std::hypot(least_, model.facts.minimum_scale) / least_;
  return fmt::format(
      "{}{} {} by little (standard deviation {:.3g}), and the model scales no series by less than "
      "{:.3g}: it sees a flat line, and bands come out up to {:.2g} times too wide; multiply the "
      "values by {:g}, and divide the forecast by it",
      about_file(), and_more(narrowest_id_, count), count == 1 ? "varies" : "vary", least_,
      model.facts.minimum_scale, factor, std::pow(10.0, std::ceil(-std::log10(least_))));
}

}  // namespace toto::cli
