// What follows from the basic operations of vec_avx2.h and vec_avx512.h; included by both, inside
// their target region and namespace. They define Vec, Ints and one operation per instruction.

// Fetches a cache line into the second-level cache.
TOTO_INLINE void prefetch(const std::byte* src) {
  _mm_prefetch(reinterpret_cast<const char*>(src), _MM_HINT_T1);
}
// a * 2^n, n being the lowest bits of `shifted`.
TOTO_INLINE Vec scale_by_power(Vec a, Vec shifted) {
  return floats_of(add(bits_of(a), shift_left<23>(bits_of(shifted))));
}
// a = mantissa * 2^exponent for a positive normal number, mantissa in [sqrt(1/2), sqrt(2)).
struct LogParts {
  Vec mantissa, exponent;
};
TOTO_INLINE LogParts log_parts(Vec a) {
  const Ints bits = bits_of(a), one = broadcast_int(int(kOneBits));
  const Ints biased = add(sub(bits, broadcast_int(int(kSqrtHalfBits))), one);
  const Ints power = both(biased, broadcast_int(int(kExponentBits)));
  const Ints exponent = sub(shift_right<23>(biased), broadcast_int(127));
  return {floats_of(add(sub(bits, power), one)), to_floats(exponent)};
}

struct F16 {
  std::uint16_t bits;
};
TOTO_INLINE Vec load_halves(const F16* src) { return widened_halves(src); }
struct Bf16 {
  std::uint16_t bits;
};
// The first and the second of each pair of columns.
TOTO_INLINE Vec load_first(const Bf16* src) { return floats_of(shift_left<16>(load_ints(src))); }
TOTO_INLINE Vec load_second(const Bf16* src) {
  return floats_of(both(load_ints(src), broadcast_int(-0x10000)));
}

TOTO_INLINE Ints load_pairs(const std::int16_t* src) { return load_ints(src); }
TOTO_INLINE Ints broadcast_pair(const std::int16_t* src) {
  int pair;
  __builtin_memcpy(&pair, src, sizeof pair);
  return broadcast_int(pair);
}

// Keeps a value in a register. Otherwise GCC 12 loads weights again for every row and reorders
// integer sums until their terms fill the registers.
template <typename Value>
TOTO_INLINE Value in_register(Value a) {
  asm("" : "+v"(a.v));
  return a;
}

// The sum of eight partial sums, in the order of reference.cc.
TOTO_INLINE float add_pairwise(__m256 eight) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
TOTO_INLINE double square_root(double x) {
  return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x)));
}
TOTO_INLINE float fma_one(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}
TOTO_INLINE double fma_one(double a, double b, double c) {
  return _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(a), _mm_set_sd(b), _mm_set_sd(c)));
}
