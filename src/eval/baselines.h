// Baselines that a forecast must beat. Each sees the whole history before the window and returns
// quantiles [level][step] at kLevels; without bands all quantiles are the point forecast.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace toto::eval {

// The latest value, for every step.
std::vector<float> persistence(std::span<const float> history, std::size_t horizon);

// The value one season ago; if that is missing, two seasons ago and so on; the latest value if all
// are missing. `season` is from 1 to the length of the history.
std::vector<float> seasonal_naive(std::span<const float> history, std::size_t season,
                                  std::size_t horizon);

// Seasonal naive with normal bands: the standard deviation of its one-season errors in the history,
// times the square root of the number of seasons ahead.
std::vector<float> seasonal_naive_bands(std::span<const float> history, std::size_t season,
                                        std::size_t horizon);

}  // namespace toto::eval
