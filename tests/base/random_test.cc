// Philox against the vectors published with Random123, and the layout of the draw's counter.
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "toto/toto.h"

namespace toto {
namespace {

// Random123, tests/kat_vectors, philox4x32 10.
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) ==
              RandomWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                         {0xffffffff, 0xffffffff}) ==
              RandomWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xa4093822, 0x299f31d0}) ==
              RandomWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, KnownAnswersAlsoAtRunTime) {
  std::array<std::uint32_t, 6> pi = {0x243f6a88, 0x85a308d3, 0x13198a2e,
                                     0x03707344, 0xa4093822, 0x299f31d0};
  const RandomWords expected = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  EXPECT_EQ(philox4x32({pi[0], pi[1], pi[2], pi[3]}, {pi[4], pi[5]}), expected);
}

TEST(DrawKey, HasTheDocumentedLayout) {
  const DrawKey draw{.seed = 0x1122334455667788,
                     .stream = 0x99aabbccddeeff00,
                     .variate = 0xabcdef,
                     .sample = 0x12345,
                     .step = 0x6789a};
  // variate * 2^40 + step * 2^20 + sample = 0xabcdef 6789a 12345.
  EXPECT_EQ(random_words(draw),
            philox4x32({0xddeeff00, 0x99aabbcc, 0x89a12345, 0xabcdef67}, {0x55667788, 0x11223344}));
  EXPECT_EQ(random_words({}), philox4x32({0, 0, 0, 0}, {0, 0}));
}

TEST(DrawKey, FitsTheLimitsOfTheEngine) {
  EXPECT_LE(kMaxSamples, 1 << 20);
  EXPECT_LE(kMaxHorizon, 1 << 20);
}

// Philox is a bijection of the counter, so equal words would mean equal counters.
TEST(DrawKey, NeighboursAndExtremesDoNotCollide) {
  const std::vector<std::uint32_t> samples = {0, 1, 2, 255, 4095, 65535, kMaxSamples - 1, 1048575};
  const std::vector<std::uint32_t> steps = {0, 1, 2, 63, 4095, 65535, kMaxHorizon - 1, 1048575};
  const std::vector<std::uint32_t> variates = {0, 1, 2, 255, 4095, 65535, 99'999, 16'777'215};
  const std::vector<std::uint64_t> streams = {0, 1, stream_of("a"), stream_of("b"), ~0ULL};
  std::set<RandomWords> seen;
  for (const auto stream : streams) {
    for (const auto variate : variates) {
      for (const auto step : steps) {
        for (const auto sample : samples)
          seen.insert(random_words({7, stream, variate, sample, step}));
      }
    }
  }
  EXPECT_EQ(seen.size(), streams.size() * variates.size() * steps.size() * samples.size());
}

TEST(DrawKey, SeedsAreIndependent) {
  int equal_bits = 0;
  constexpr int kDraws = 10'000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const RandomWords one = random_words({.seed = 0, .sample = i});
    const RandomWords two = random_words({.seed = 1, .sample = i});
    for (std::size_t w = 0; w < one.size(); ++w) equal_bits += 32 - std::popcount(one[w] ^ two[w]);
  }
  // Binomial with mean 640,000 and standard deviation 566: within five of them.
  EXPECT_NEAR(equal_bits, kDraws * 64, 2'830);
}

TEST(StreamOf, IsFnv1a) {
  EXPECT_EQ(stream_of(""), 0xcbf29ce484222325);
  EXPECT_EQ(stream_of("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(stream_of("foobar"), 0x85944171f73967e8);
}

TEST(StreamOf, DiffersAndIsNeverTheCommonStream) {
  std::set<std::uint64_t> seen = {0};
  for (int i = 0; i < 100'000; ++i) seen.insert(stream_of("series_" + std::to_string(i)));
  EXPECT_EQ(seen.size(), 100'001u);
}

}  // namespace
}  // namespace toto
