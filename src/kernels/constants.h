// Constants shared by all instruction sets, so that they compute the same bits.
#pragma once

namespace toto::kernels {

// exp for float: exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) by a
// polynomial in Horner form. Largest error 1.1 ulp (kernels_test).
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e400p-1f;  // 15 bits, so n * kLn2High is exact
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kRoundMagic = 0x1.8p+23f;  // adding it rounds to the nearest integer
inline constexpr float kExpLowest = -87.33f;      // 2^n stays a normal number
inline constexpr float kExpHighest = 88.37f;
inline constexpr int kExpTerms = 8;  // 1/7!, ..., 1/1!, 1
inline constexpr float kExpPoly[kExpTerms] = {0x1.a01a02p-13f,
                                              0x1.6c16c2p-10f,
                                              0x1.111112p-7f,
                                              0x1.555556p-5f,
                                              0x1.555556p-3f,
                                              0.5f,
                                              1.0f,
                                              1.0f};

// Rows quantised to int16. A group whose largest magnitude is below kSmallestGroup becomes zeros:
// its factor kLargestInt16 / largest would overflow.
inline constexpr float kLargestInt16 = 32767;
inline constexpr float kSmallestGroup = 1e-30f;

// The weights of a norm that has none.
inline constexpr float kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace toto::kernels
