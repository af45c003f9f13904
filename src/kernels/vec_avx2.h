// Eight floats. Included inside the target region and namespace of avx2.cc.
struct Vec {
  static constexpr int kLanes = 8;
  __m256 v;
};
TOTO_INLINE Vec load(const float* src) { return {_mm256_loadu_ps(src)}; }
TOTO_INLINE void store(float* dst, Vec a) { _mm256_storeu_ps(dst, a.v); }
TOTO_INLINE Vec broadcast(float x) { return {_mm256_set1_ps(x)}; }
TOTO_INLINE Vec zero() { return {_mm256_setzero_ps()}; }
TOTO_INLINE Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
TOTO_INLINE Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
TOTO_INLINE Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
TOTO_INLINE Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
TOTO_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
TOTO_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
TOTO_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
TOTO_INLINE Vec swap_pairs(Vec a) { return {_mm256_permute_ps(a.v, 0xB1)}; }
TOTO_INLINE Vec square_root(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
// `negative` where the sign bit of a is set.
TOTO_INLINE Vec select_by_sign(Vec a, Vec negative, Vec positive) {
  return {_mm256_blendv_ps(positive.v, negative.v, a.v)};
}
// Eight sums of int16 products, or eight pairs of their factors.
struct Ints {
  __m256i v;
};
TOTO_INLINE Ints bits_of(Vec a) { return {_mm256_castps_si256(a.v)}; }
TOTO_INLINE Vec floats_of(Ints a) { return {_mm256_castsi256_ps(a.v)}; }
TOTO_INLINE Ints load_ints(const void* src) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src))};
}
TOTO_INLINE Vec widened_halves(const void* src) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src)))};
}
TOTO_INLINE Ints broadcast_int(int x) { return {_mm256_set1_epi32(x)}; }
TOTO_INLINE Ints add(Ints a, Ints b) { return {_mm256_add_epi32(a.v, b.v)}; }
TOTO_INLINE Ints sub(Ints a, Ints b) { return {_mm256_sub_epi32(a.v, b.v)}; }
TOTO_INLINE Ints both(Ints a, Ints b) { return {_mm256_and_si256(a.v, b.v)}; }
template <int kBits>
TOTO_INLINE Ints shift_left(Ints a) {
  return {_mm256_slli_epi32(a.v, kBits)};
}
template <int kBits>
TOTO_INLINE Ints shift_right(Ints a) {
  return {_mm256_srli_epi32(a.v, kBits)};
}
TOTO_INLINE Ints zero_ints() { return {_mm256_setzero_si256()}; }
TOTO_INLINE Ints load_pairs(const std::int8_t* src) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src)))};
}
TOTO_INLINE void store_pairs(std::int16_t* dst, Ints a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), a.v);
}
TOTO_INLINE Ints multiply_add_pairs(Ints a, Ints b, Ints sum) {
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(a.v, b.v))};
}
TOTO_INLINE Vec to_floats(Ints a) { return {_mm256_cvtepi32_ps(a.v)}; }
TOTO_INLINE Vec absolute(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
// The low halves of the bits of a - b.
TOTO_INLINE void store_difference(std::int16_t* dst, Vec a, Vec b) {
  const __m256i wide = sub(bits_of(a), bits_of(b)).v;
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(dst),
      _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
}

#include "kernels/vec_x86.h"

struct PartialSums {  // kPartialSums of them
  Vec low, high;
};
TOTO_INLINE PartialSums zero_sums() { return {zero(), zero()}; }
TOTO_INLINE PartialSums load_sums(const float* src) { return {load(src), load(src + 8)}; }
TOTO_INLINE PartialSums multiply_add(PartialSums sums, const float* a, const float* b) {
  return {fma(load(a), load(b), sums.low), fma(load(a + 8), load(b + 8), sums.high)};
}
TOTO_INLINE float add_pairwise(PartialSums a) {
  return add_pairwise(_mm256_add_ps(a.low.v, a.high.v));
}

struct Doubles {
  static constexpr int kLanes = 4;
};
TOTO_INLINE void accumulate_some(double* acc, double weight, const float* src) {
  const __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(src));
  _mm256_storeu_pd(acc, _mm256_fmadd_pd(_mm256_set1_pd(weight), x, _mm256_loadu_pd(acc)));
}
// dst = src * factor * weight, rounded to float once.
TOTO_INLINE void scale_some(float* dst, const float* src, double factor, const float* weight) {
  const __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(src)), w = _mm256_cvtps_pd(_mm_loadu_ps(weight));
  _mm_storeu_ps(dst, _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_mul_pd(x, _mm256_set1_pd(factor)), w)));
}
