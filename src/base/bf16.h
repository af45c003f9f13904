// The upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace toto {

inline std::uint16_t to_bf16(float value) {  // to nearest, ties to even; finite values only
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace toto
