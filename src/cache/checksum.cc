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

// Eight independent sums, because a multiplication takes several cycles; in variables instead of
// the array, which g++ would turn into slower vector code.
void Checksum::update(std::span<const std::byte> blocks) noexcept {
  auto [a, b, c, d, e, f, g, h] = lanes_;
  const std::byte* end = blocks.data() + blocks.size() / kChecksumBlock * kChecksumBlock;
  for (const std::byte* at = blocks.data(); at != end; at += kChecksumBlock) {
    a = add_to_checksum(a, word_at(at));
    b = add_to_checksum(b, word_at(at + 8));
    c = add_to_checksum(c, word_at(at + 16));
    d = add_to_checksum(d, word_at(at + 24));
    e = add_to_checksum(e, word_at(at + 32));
    f = add_to_checksum(f, word_at(at + 40));
    g = add_to_checksum(g, word_at(at + 48));
    h = add_to_checksum(h, word_at(at + 56));
  }
  lanes_ = {a, b, c, d, e, f, g, h};
  num_bytes_ += blocks.size();
}

std::uint64_t Checksum::finish() noexcept {
  std::uint64_t sum = num_bytes_;
  for (const std::uint64_t lane : lanes_) sum = add_to_checksum(sum, lane);
  *this = Checksum();
  return sum;
}

std::uint64_t checksum(std::span<const std::byte> blocks) noexcept {
  Checksum sum;
  sum.update(blocks);
  return sum.finish();
}

}  // namespace toto::cache
