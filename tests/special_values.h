// Values that are not numbers; a missing value of a series is NaN.
#pragma once

#include <limits>

namespace toto {

inline constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace toto
