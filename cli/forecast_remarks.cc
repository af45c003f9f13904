#include "forecast_remarks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "io/json.h"

namespace toto::cli {
namespace {

std::string and_more(std::string_view id, std::size_t count) {
  if (count == 1) return fmt::format("the series {}", io::quoted(id));
  return fmt::format("the series {} and {} more", io::quoted(id), count - 1);
}

// What the model is shown of a series, missing values left out: of the deviation they change
// little.
double deviation_of(const io::InputSeries& series, int max_context) {
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

std::optional<std::string> context_remark(const ForecastRequest& request,
                                          const io::InputData& input) {
  if (!request.cuts_by_default) return {};
  const auto most = static_cast<std::size_t>(request.options.max_context);
  const io::InputSeries* first = nullptr;
  std::size_t count = 0;
  for (const io::InputSeries& series : input.series) {
    if (series.values.size() <= most) continue;
    if (count++ == 0) first = &series;
  }
  if (first == nullptr) return {};
  return fmt::format("{}: the latest {} of {} values are used of {}; --context N uses more",
                     input.name, most, first->values.size(), and_more(first->id, count));
}

std::optional<std::string> multivariate_remark(const ForecastRequest& request,
                                               const io::InputData& input,
                                               const ForecastBatch& batch) {
  if (!request.multivariate || batch.num_variates() > 1) return {};
  return fmt::format(
      "--multivariate changes nothing: {} has one series, {}, and no other for it to look at{}",
      input.name, io::quoted(input.series.front().id),
      input.time_name.empty() ? "" : "; --columns A,B names the columns to read");
}

std::optional<std::string> scale_remark(const ForecastRequest& request, const io::InputData& input,
                                        const ModelInfo& model) {
  constexpr double kFarBelow = 3;  // of the minimum scale: bands up to three times too wide pass
  const io::InputSeries* narrowest = nullptr;
  double least = model.minimum_scale / kFarBelow;
  std::size_t count = 0;
  for (const io::InputSeries& series : input.series) {
    const double deviation = deviation_of(series, request.options.max_context);
    if (deviation == 0 || deviation >= model.minimum_scale / kFarBelow) continue;
    ++count;
    if (deviation < least) {
      narrowest = &series;
      least = deviation;
    }
  }
  if (narrowest == nullptr) return {};
  const double factor = std::hypot(least, model.minimum_scale) / least;
  return fmt::format(
      "{}: {} {} by little (standard deviation {:.3g}), and the model scales no series by less "
      "than {:.3g}: it sees a flat line, and bands come out up to {:.0f} times too wide; multiply "
      "the values by {:g}, and divide the forecast by it",
      input.name, and_more(narrowest->id, count), count == 1 ? "varies" : "vary", least,
      model.minimum_scale, factor, std::pow(10.0, std::ceil(-std::log10(least))));
}

}  // namespace toto::cli
