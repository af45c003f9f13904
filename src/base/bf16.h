// bfloat16: the upper 16 bits of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace toto {

// Rounds to nearest, ties to even. `value` must be finite.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace toto
