// The series the network sees, and the way back to prices.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tables/bars.h"

namespace toto::backtest {

// pct: x[i] / x[i-d] - 1, log: its logarithm form, price: x itself; d is the decision lag, so that
// step d of the forecast is the change from the decision to the target bar.
enum class Transform { pct, log, price };
std::string_view name_of(Transform transform) noexcept;
Transform parse_transform(std::string_view name);  // Error(invalid_argument) lists the names

// Points of the transformed series up to and including bar `decision`.
std::size_t num_points(Transform transform, std::size_t decision, std::size_t lag);

// The latest `max_points` of them, times `scale`; reads no price after bar `decision`.
void make_context(Transform transform, double scale, std::span<const double> prices,
                  std::size_t decision, std::size_t lag, std::size_t max_points,
                  std::vector<float>& context);

// A forecast value, `scale` times what it says, as a price; `last` is the price at the decision.
double to_price(Transform transform, double scale, double value, double last);

// Error(corrupt_file) with file and line where a change from bar to bar is beyond float32.
void check_changes(const tables::Bars& bars, Transform transform, double scale, std::size_t lag);

}  // namespace toto::backtest
