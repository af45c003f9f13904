// Sums of the plain reference implementations, in double for values of any type. The optimised
// networks use none of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace toto::plain {

// A product of the base size takes seconds for a wide series; cancelling must not wait for it.
inline constexpr int kRowsBetweenChecks = 64;

// dst = softmax(scores) . values; `value(i)` is the i-th value vector.
template <typename T, typename Value>
void weighted_mean(std::span<double> scores, int head_dim, T* dst, const Value& value) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - highest);
  for (int d = 0; d < head_dim; ++d) {
    double sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i)
      sum += scores[i] * value(static_cast<int>(i))[d];
    dst[d] = static_cast<T>(sum / total);
  }
}

// Eight independent sums, so that an addition does not wait for the previous one.
template <typename T>
double dot(const T* a, const T* b, int size) {
  constexpr int kSums = 8;
  double sums[kSums] = {};
  int i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (int j = 0; j < kSums; ++j) sums[j] += static_cast<double>(a[i + j]) * b[i + j];
  }
  double total = 0;
  for (; i < size; ++i) total += static_cast<double>(a[i]) * b[i];
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace toto::plain
