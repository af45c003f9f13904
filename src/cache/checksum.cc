#include "cache/checksum.h"

#include <cstring>

namespace toto::cache {
namespace {

std::uint64_t word_at(const std::byte* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

// Eight sums side by side, because a multiplication takes several cycles; in variables and not in
// an array, which g++ would turn into slower vector code.
std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
  const std::byte* end = bytes.data() + bytes.size() / kChecksumBlock * kChecksumBlock;
  for (const std::byte* at = bytes.data(); at != end; at += kChecksumBlock) {
    a = add_to_checksum(a, word_at(at));
    b = add_to_checksum(b, word_at(at + 8));
    c = add_to_checksum(c, word_at(at + 16));
    d = add_to_checksum(d, word_at(at + 24));
    e = add_to_checksum(e, word_at(at + 32));
    f = add_to_checksum(f, word_at(at + 40));
    g = add_to_checksum(g, word_at(at + 48));
    h = add_to_checksum(h, word_at(at + 56));
  }
  std::uint64_t sum = bytes.size();
  for (const std::uint64_t part : {a, b, c, d, e, f, g, h}) sum = add_to_checksum(sum, part);
  return sum;
}

}  // namespace toto::cache
