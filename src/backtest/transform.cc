#include "backtest/transform.h"

#include <algorithm>
#include <array>

#include "base/elementary.h"
#include "base/error.h"
#include "base/text.h"
#include "io/csv.h"

namespace toto::backtest {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"pct", "log", "price"};

double transformed(Transform transform, const tables::Bars& bars, const std::vector<double>& prices,
                   std::size_t bar, std::size_t lag) {
  switch (transform) {
    case Transform::pct:
      return prices[bar] / bars.close[bar - lag] - 1;
    case Transform::log:
      return elementary::log(prices[bar] / bars.close[bar - lag]);
    case Transform::price:
      break;
  }
  return prices[bar];
}

// Bars before the first point.
std::size_t skipped_bars(Transform transform, std::size_t lag) {
  return transform == Transform::price ? 0 : lag;
}

}  // namespace

std::string_view name_of(Transform transform) noexcept {
  return kNames[static_cast<std::size_t>(transform)];
}

Transform parse_transform(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    fail(ErrorCode::invalid_argument, "there is no transform {}, expected pct, log or price",
         quoted(name));
  }
  return static_cast<Transform>(found - kNames.begin());
}

std::size_t num_points(Transform transform, std::size_t decision, std::size_t lag) {
  const std::size_t skipped = skipped_bars(transform, lag);
  return decision + 1 > skipped ? decision + 1 - skipped : 0;
}

std::size_t context_start(std::size_t points, std::size_t max_points) {
  if (points <= max_points) return 0;
  const std::size_t block = std::max<std::size_t>(1, max_points / 8);
  return (points - max_points + block - 1) / block * block;
}

void make_context(Transform transform, const tables::Bars& bars, tables::Target target,
                  std::size_t decision, std::size_t lag, std::size_t max_points,
                  std::vector<float>& context) {
  const std::vector<double>& prices = bars.prices(target);
  const std::size_t points = num_points(transform, decision, lag);
  const std::size_t start = context_start(points, max_points);
  const std::size_t first = skipped_bars(transform, lag) + start;
  context.resize(points - start);
  for (std::size_t i = 0; i < context.size(); ++i) {
    context[i] = static_cast<float>(transformed(transform, bars, prices, first + i, lag));
  }
}

double to_price(Transform transform, double value, double close) {
  switch (transform) {
    case Transform::pct:
      return close * (1 + value);
    case Transform::log:
      return close * elementary::exp(value);
    case Transform::price:
      break;
  }
  return value;
}

void check_changes(const tables::Bars& bars, Transform transform, std::size_t lag) {
  if (transform == Transform::price) return;
  for (const tables::Target target : tables::kTargets) {
    const std::vector<double>& prices = bars.prices(target);
    for (std::size_t bar = lag; bar < prices.size(); ++bar) {
      float rounded = 0;
      if (io::to_float(transformed(transform, bars, prices, bar, lag), rounded)) continue;
      fail(ErrorCode::corrupt_file,
           "{}: line {}: the {} {} after a close of {} is a change beyond float32, expected prices "
           "of one scale",
           bars.file, bars.lines[bar], name_of(target), prices[bar], bars.close[bar - lag]);
    }
  }
}

}  // namespace toto::backtest
