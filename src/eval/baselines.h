// What a forecast must beat. Each sees the whole history before the window and returns quantiles
// [level][step], the levels being kLevels; without bands the point stands for every quantile.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace toto::eval {

// The latest value, for every step.
std::vector<float> persistence(std::span<const float> history, std::size_t horizon);

// The value one season ago; where that is missing two seasons ago and so on, and the latest value
// where a whole season has none. `season` is at least 1 and at most the length of the history.
std::vector<float> seasonal_naive(std::span<const float> history, std::size_t season,
                                  std::size_t horizon);

// Seasonal naive with normal bands: the standard deviation of its own errors one season ahead in
// the history, times the root of the number of seasons ahead.
std::vector<float> seasonal_naive_bands(std::span<const float> history, std::size_t season,
                                        std::size_t horizon);

}  // namespace toto::eval
