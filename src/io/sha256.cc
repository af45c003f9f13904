#include "io/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace toto::io {
namespace {

constexpr std::array<std::uint32_t, 8> kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(16) constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using HashState = std::array<std::uint32_t, 8>;

// ---------------------------------------------------------------------------------------- portable

std::uint32_t load_big_endian(const std::byte* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

// One round. The eight words are addressed relative to `kStep` instead of being rotated, so after
// inlining no word moves between registers.
template <int kStep>
[[gnu::always_inline]] inline void round(HashState& s, std::uint32_t word_and_constant) {
  constexpr auto kAt = [](int i) { return static_cast<std::size_t>((i - kStep) & 7); };
  const std::uint32_t a = s[kAt(0)], b = s[kAt(1)], c = s[kAt(2)];
  const std::uint32_t e = s[kAt(4)], f = s[kAt(5)], g = s[kAt(6)];
  const std::uint32_t big_sigma1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
  const std::uint32_t choose = g ^ (e & (f ^ g));
  const std::uint32_t t1 = s[kAt(7)] + big_sigma1 + choose + word_and_constant;
  const std::uint32_t big_sigma0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
  const std::uint32_t majority = (a & b) ^ (c & (a ^ b));
  s[kAt(3)] += t1;
  s[kAt(7)] = t1 + big_sigma0 + majority;
}

// Word i of the message schedule from the sixteen before it, in place.
template <int kWord>
[[gnu::always_inline]] inline std::uint32_t schedule(std::array<std::uint32_t, 16>& w) {
  constexpr auto kAt = [](int back) { return static_cast<std::size_t>((kWord - back) & 15); };
  const std::uint32_t w15 = w[kAt(15)], w2 = w[kAt(2)];
  const std::uint32_t sigma0 = std::rotr(w15, 7) ^ std::rotr(w15, 18) ^ (w15 >> 3);
  const std::uint32_t sigma1 = std::rotr(w2, 17) ^ std::rotr(w2, 19) ^ (w2 >> 10);
  return w[kAt(16)] += sigma0 + w[kAt(7)] + sigma1;
}

template <int... kSteps>
[[gnu::always_inline]] inline void sixteen_rounds(HashState& s, std::array<std::uint32_t, 16>& w,
                                                  const std::uint32_t* constants, bool first,
                                                  std::integer_sequence<int, kSteps...>) {
  (round<kSteps>(s, constants[kSteps] + (first ? w[kSteps] : schedule<kSteps>(w))), ...);
}

void compress_portable(HashState& state, const std::byte* blocks, std::size_t count) noexcept {
  constexpr auto kSixteen = std::make_integer_sequence<int, 16>();
  for (; count > 0; --count, blocks += 64) {
    std::array<std::uint32_t, 16> w;
    for (std::size_t i = 0; i < 16; ++i) w[i] = load_big_endian(blocks + 4 * i);
    HashState s = state;
    sixteen_rounds(s, w, kRound.data(), true, kSixteen);
    for (std::size_t i = 16; i < 64; i += 16) {
      sixteen_rounds(s, w, kRound.data() + i, false, kSixteen);
    }
    for (std::size_t i = 0; i < 8; ++i) state[i] += s[i];
  }
}

// ---------------------------------------------------------------------- the CPU's own instructions
//
// The only intrinsics outside src/kernels: hashing 600 MB of weights takes 0.4 s instead of 2.5 s,
// which is most of the time needed to load a model.

#if defined(__x86_64__)

bool cpu_has_sha() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

[[gnu::target("sha,sse4.1")]] void compress_with_instructions(HashState& state,
                                                              const std::byte* blocks,
                                                              std::size_t count) noexcept {
  const auto load = [](const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); };
  // The instructions expect the words as ABEF and CDGH, highest first.
  const __m128i dcba = load(&state[0]);
  const __m128i hgfe = load(&state[4]);
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];  // the last sixteen words of the schedule, four each
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(load(blocks + 16 * i), big_endian);
      } else {
        const __m128i last = w[(i + 3) % 4];
        const __m128i seven_back = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
        now = _mm_sha256msg1_epu32(now, w[(i + 1) % 4]);
        now = _mm_sha256msg2_epu32(_mm_add_epi32(now, seven_back), last);
      }
      const __m128i sum = _mm_add_epi32(now, load(&kRound[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool cpu_has_sha() noexcept { return false; }

void compress_with_instructions(HashState& state, const std::byte* blocks,
                                std::size_t count) noexcept {
  compress_portable(state, blocks, count);
}

#endif

}  // namespace

bool Sha256::has_instructions() noexcept {
  static const bool has = cpu_has_sha();
  return has;
}

Sha256::Sha256(Code code) : use_instructions_(code != Code::portable && has_instructions()) {
  if (code == Code::instructions && !use_instructions_) {
    fail(ErrorCode::unsupported, "this CPU has no SHA-256 instructions; use the portable code");
  }
  reset();
}

void Sha256::reset() noexcept {
  state_ = kInitial;
  length_ = 0;
}

void Sha256::compress(const std::byte* blocks, std::size_t count) noexcept {
  if (use_instructions_) {
    compress_with_instructions(state_, blocks, count);
  } else {
    compress_portable(state_, blocks, count);
  }
}

void Sha256::update(std::span<const std::byte> bytes) noexcept {
  const std::size_t held = length_ % kBlock;
  length_ += bytes.size();
  if (held > 0) {
    const auto part = bytes.first(std::min(bytes.size(), kBlock - held));
    std::copy(part.begin(), part.end(), pending_.begin() + static_cast<std::ptrdiff_t>(held));
    if (held + part.size() < kBlock) return;
    compress(pending_.data(), 1);
    bytes = bytes.subspan(part.size());
  }
  const std::size_t whole = bytes.size() / kBlock;
  compress(bytes.data(), whole);
  bytes = bytes.subspan(whole * kBlock);
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

Sha256::Digest Sha256::digest() noexcept {
  // A one bit, zeros up to eight bytes short of a block, the length in bits.
  std::array<std::byte, kBlock + 8> padding{std::byte{0x80}};
  const std::size_t zeros_end = (kBlock + kBlock - 8 - length_ % kBlock - 1) % kBlock + 1;
  for (std::size_t i = 0; i < 8; ++i) {
    padding[zeros_end + i] = static_cast<std::byte>(length_ * 8 >> (56 - 8 * i));
  }
  update(std::span(padding).first(zeros_end + 8));
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  reset();
  return digest;
}

std::string Sha256::hex_digest() {
  std::string hex;
  for (const std::byte byte : digest()) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

}  // namespace toto::io
