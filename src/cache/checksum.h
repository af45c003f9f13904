// A checksum at memory bandwidth for cache files, which may be torn or damaged. It does not protect
// against forgery: a process that can write the cache folder can write anything into it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace toto::cache {

inline constexpr std::size_t kChecksumBlock = 64;

// Adds a word. The step is reversible in both arguments, so two inputs that differ in exactly one
// word never have the same sum.
constexpr std::uint64_t add_to_checksum(std::uint64_t sum, std::uint64_t word) noexcept {
  const std::uint64_t product = (sum ^ word) * 0x9E3779B97F4A7C15U;  // odd, hence reversible
  return product ^ product >> 32;  // lets high bits reach all others in the next step
}

// Detects every change within eight aligned bytes; larger accidental changes are missed with
// probability 2^-64.
class Checksum {
 public:
  void update(std::span<const std::byte> blocks) noexcept;  // whole blocks of kChecksumBlock
  std::uint64_t finish() noexcept;                          // returns the sum and resets it

 private:
  std::array<std::uint64_t, kChecksumBlock / 8> lanes_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t num_bytes_ = 0;
};

std::uint64_t checksum(std::span<const std::byte> blocks) noexcept;

}  // namespace toto::cache
