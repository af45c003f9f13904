// Size classes: a plan or schedule made for one size also serves the neighbouring sizes.
#pragma once

namespace toto {

// `size` rounded up in steps of an eighth to a quarter of it, so a series that grows point by point
// rarely changes its class.
constexpr int size_class(int size) noexcept {
  int step = 1;
  while (size > 8 * step) step *= 2;
  return (size + step - 1) / step * step;
}

}  // namespace toto
