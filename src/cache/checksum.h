// A checksum that reads as fast as memory delivers, for files of our own that may be torn or
// damaged. Not against forgers: who can write the cache folder can write anything into it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace toto::cache {

inline constexpr std::size_t kChecksumBlock = 64;

// Adds a word. For a given sum every word gives another result, and for a given word every sum
// does: two inputs that differ in one word only can never end with the same sum.
constexpr std::uint64_t add_to_checksum(std::uint64_t sum, std::uint64_t word) noexcept {
  const std::uint64_t product = (sum ^ word) * 0x9E3779B97F4A7C15U;  // odd, so this is reversible
  return product ^ product >> 32;  // lets high bits, too, reach all others in the next step
}

// Any change within eight aligned bytes is found for certain; of accidents that take more, one in
// 2^64 is missed.
class Checksum {
 public:
  void update(std::span<const std::byte> blocks) noexcept;  // whole ones
  std::uint64_t finish() noexcept;                          // starts afresh

 private:
  std::array<std::uint64_t, kChecksumBlock / 8> lanes_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t num_bytes_ = 0;
};

std::uint64_t checksum(std::span<const std::byte> blocks) noexcept;

}  // namespace toto::cache
