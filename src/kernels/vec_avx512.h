// Sixteen floats. Included inside the target regions and namespaces of avx512.cc and
// avx512_vnni.cc, which add multiply_add_pairs: the sum of two int16 products and an int32.
struct Vec {
  static constexpr int kLanes = 16;
  __m512 v;
};
TOTO_INLINE Vec load(const float* src) { return {_mm512_loadu_ps(src)}; }
TOTO_INLINE void store(float* dst, Vec a) { _mm512_storeu_ps(dst, a.v); }
TOTO_INLINE Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }
TOTO_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
TOTO_INLINE Vec add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
TOTO_INLINE Vec sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
TOTO_INLINE Vec mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
TOTO_INLINE Vec div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
TOTO_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
TOTO_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
TOTO_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
TOTO_INLINE Vec swap_pairs(Vec a) { return {_mm512_permute_ps(a.v, 0xB1)}; }
TOTO_INLINE Vec square_root(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
// `negative` where the sign bit of a is set.
TOTO_INLINE Vec select_by_sign(Vec a, Vec negative, Vec positive) {
  return {
      _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(a.v)), positive.v, negative.v)};
}
// Sixteen sums of int16 products, or sixteen pairs of their factors.
struct Ints {
  __m512i v;
};
TOTO_INLINE Ints bits_of(Vec a) { return {_mm512_castps_si512(a.v)}; }
TOTO_INLINE Vec floats_of(Ints a) { return {_mm512_castsi512_ps(a.v)}; }
TOTO_INLINE Ints load_ints(const void* src) {
  return {_mm512_loadu_si512(reinterpret_cast<const __m512i*>(src))};
}
TOTO_INLINE Vec widened_halves(const void* src) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)))};
}
TOTO_INLINE Ints broadcast_int(int x) { return {_mm512_set1_epi32(x)}; }
TOTO_INLINE Ints add(Ints a, Ints b) { return {_mm512_add_epi32(a.v, b.v)}; }
TOTO_INLINE Ints sub(Ints a, Ints b) { return {_mm512_sub_epi32(a.v, b.v)}; }
TOTO_INLINE Ints both(Ints a, Ints b) { return {_mm512_and_si512(a.v, b.v)}; }
template <int kBits>
TOTO_INLINE Ints shift_left(Ints a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
template <int kBits>
TOTO_INLINE Ints shift_right(Ints a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
TOTO_INLINE Ints zero_ints() { return {_mm512_setzero_si512()}; }
TOTO_INLINE Ints load_pairs(const std::int8_t* src) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)))};
}
TOTO_INLINE void store_pairs(std::int16_t* dst, Ints a) {
  _mm512_storeu_si512(reinterpret_cast<__m512i*>(dst), a.v);
}
TOTO_INLINE Vec to_floats(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }
TOTO_INLINE Vec absolute(Vec a) { return {_mm512_abs_ps(a.v)}; }
// The low halves of the bits of a - b.
TOTO_INLINE void store_difference(std::int16_t* dst, Vec a, Vec b) {
  const Ints wide = sub(bits_of(a), bits_of(b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), _mm512_cvtepi32_epi16(wide.v));
}

#include "kernels/vec_x86.h"

struct PartialSums {  // kPartialSums of them
  Vec all;
};
TOTO_INLINE PartialSums zero_sums() { return {zero()}; }
TOTO_INLINE PartialSums load_sums(const float* src) { return {load(src)}; }
TOTO_INLINE PartialSums multiply_add(PartialSums sums, const float* a, const float* b) {
  return {fma(load(a), load(b), sums.all)};
}
TOTO_INLINE float add_pairwise(PartialSums a) {
  return add_pairwise(
      _mm256_add_ps(_mm512_castps512_ps256(a.all.v), _mm512_extractf32x8_ps(a.all.v, 1)));
}

struct Doubles {
  static constexpr int kLanes = 8;
};
TOTO_INLINE void accumulate_some(double* acc, double weight, const float* src) {
  const __m512d x = _mm512_cvtps_pd(_mm256_loadu_ps(src));
  _mm512_storeu_pd(acc, _mm512_fmadd_pd(_mm512_set1_pd(weight), x, _mm512_loadu_pd(acc)));
}
// dst = src * factor * weight, rounded to float once.
TOTO_INLINE void scale_some(float* dst, const float* src, double factor, const float* weight) {
  const __m512d x = _mm512_cvtps_pd(_mm256_loadu_ps(src)),
                w = _mm512_cvtps_pd(_mm256_loadu_ps(weight));
  _mm256_storeu_ps(dst,
                   _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_mul_pd(x, _mm512_set1_pd(factor)), w)));
}
