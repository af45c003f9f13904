// The series the network sees, and the way back to prices.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tables/bars.h"

namespace toto::backtest {

// pct: x[i] / close[i-d] - 1, log: log(x[i] / close[i-d]), price: x itself; d is the decision lag,
// so that step d of the forecast of every target is its change from the close at the decision.
enum class Transform { pct, log, price };
std::string_view name_of(Transform transform) noexcept;
Transform parse_transform(std::string_view name);  // Error(invalid_argument) lists the names

// Points of the transformed series up to and including bar `decision`.
std::size_t num_points(Transform transform, std::size_t decision, std::size_t lag);

// The first point of a context of at most `max_points` (at least 1) out of `points`, counted from
// the file's first: 0, or a multiple of max_points / 8, so that the contexts of consecutive
// decisions begin together and a longer one continues a shorter one.
std::size_t context_start(std::size_t points, std::size_t max_points);

// The points from context_start() on; reads no price after bar `decision`.
void make_context(Transform transform, const tables::Bars& bars, tables::Target target,
                  std::size_t decision, std::size_t lag, std::size_t max_points,
                  std::vector<float>& context);

// A forecast value as a price; `close` is the close at the decision.
double to_price(Transform transform, double value, double close);

// Error(corrupt_file) with file and line where a change from a close is beyond float32.
void check_changes(const tables::Bars& bars, Transform transform, std::size_t lag);

}  // namespace toto::backtest
