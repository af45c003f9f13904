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

double transformed(Transform transform, double scale, std::span<const double> prices,
                   std::size_t bar, std::size_t lag) {
  switch (transform) {
    case Transform::pct:
      return scale * (prices[bar] / prices[bar - lag] - 1);
    case Transform::log:
      return scale * elementary::log(prices[bar] / prices[bar - lag]);
    case Transform::price:
      break;
  }
  return prices[bar];
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
  const std::size_t skipped = transform == Transform::price ? 0 : lag;
  return decision + 1 > skipped ? decision + 1 - skipped : 0;
}

void make_context(Transform transform, double scale, std::span<const double> prices,
                  std::size_t decision, std::size_t lag, std::size_t max_points,
                  std::vector<float>& context) {
  const std::size_t count = std::min(max_points, num_points(transform, decision, lag));
  context.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bar = decision + 1 - count + i;
    context[i] = static_cast<float>(transformed(transform, scale, prices, bar, lag));
  }
}

double to_price(Transform transform, double scale, double value, double last) {
  switch (transform) {
    case Transform::pct:
      return last * (1 + value / scale);
    case Transform::log:
      return last * elementary::exp(value / scale);
    case Transform::price:
      break;
  }
  return value;
}

void check_changes(const tables::Bars& bars, Transform transform, double scale, std::size_t lag) {
  if (transform == Transform::price) return;
  for (const tables::Target target : tables::kTargets) {
    const std::vector<double>& prices = bars.prices(target);
    for (std::size_t bar = lag; bar < prices.size(); ++bar) {
      float rounded = 0;
      if (io::to_float(transformed(transform, scale, prices, bar, lag), rounded)) continue;
      fail(ErrorCode::corrupt_file,
           "{}: line {}: the {} {} after {} is a change beyond float32, expected prices of one "
           "scale",
           bars.file, bars.lines[bar], name_of(target), prices[bar], prices[bar - lag]);
    }
  }
}

}  // namespace toto::backtest
