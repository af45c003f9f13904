// Counter-based random numbers: a draw is a pure function of its coordinates, so the order of
// computation, batching and threads cannot change it. Philox4x32-10 of Salmon, Moraes, Dror and
// Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11).
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <string_view>

namespace toto {

using RandomWords = std::array<std::uint32_t, 4>;

// One block: the 128-bit counter enciphered under the 64-bit key.
constexpr RandomWords philox4x32(RandomWords counter, std::array<std::uint32_t, 2> key) noexcept {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The coordinates of one draw. Two different keys of one seed give different counters, and Philox
// is a bijection of the counter: no two draws of a seed share their random words.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;   // 0: common to all series; else stream_of(series id)
  std::uint32_t variate = 0;  // within its series, below 2^24
  std::uint32_t sample = 0;   // below 2^20 (kMaxSamples is 10^6)
  std::uint32_t step = 0;     // within the horizon, below 2^20 (kMaxHorizon is 10^5)
};

// Layout: the Philox key is the seed, low word first. Of the counter, words 0 and 1 are the stream,
// low word first; words 2 and 3 are variate * 2^40 + step * 2^20 + sample, low word first.
constexpr RandomWords random_words(const DrawKey& draw) noexcept {
  assert(draw.variate < (1u << 24) && draw.sample < (1u << 20) && draw.step < (1u << 20));
  const std::uint64_t place =
      (std::uint64_t{draw.variate} << 40) | (std::uint64_t{draw.step} << 20) | draw.sample;
  return philox4x32(
      {static_cast<std::uint32_t>(draw.stream), static_cast<std::uint32_t>(draw.stream >> 32),
       static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)},
      {static_cast<std::uint32_t>(draw.seed), static_cast<std::uint32_t>(draw.seed >> 32)});
}

// The separate stream of a series id: 64-bit FNV-1a, never the common stream 0.
constexpr std::uint64_t stream_of(std::string_view id) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash == 0 ? 1 : hash;
}

}  // namespace toto
