// Sizes grouped into classes, so that what is prepared for one size serves its neighbours too.
#pragma once

namespace toto {

// `size` rounded up in steps of an eighth to a quarter: a series growing point by point changes its
// class rarely.
constexpr int size_class(int size) noexcept {
  int step = 1;
  while (size > 8 * step) step *= 2;
  return (size + step - 1) / step * step;
}

}  // namespace toto
