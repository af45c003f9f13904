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

// log(1 + f) = f - f^2 / 2 + f^3 P(f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], a Chebyshev fit with a
// relative error of 2.4e-8; the highest power first.
inline constexpr unsigned kSqrtHalfBits = 0x3f3504f3;
inline constexpr unsigned kOneBits = 0x3f800000;
inline constexpr unsigned kExponentBits = 0xff800000;
inline constexpr float kLn2 = 0x1.62e430p-1f;
inline constexpr int kLogTerms = 8;
inline constexpr float kLogPoly[kLogTerms] = {
    -0.08101559430360794f, 0.12712308764457703f, -0.12972238659858704f, 0.14202173054218292f,
    -0.16642247140407562f, 0.20001468062400818f, -0.25000298023223877f, 0.333333283662796f};

// erfcx(x) = e^(x^2) erfc(x) for x >= 0 as a quotient of polynomials, relative error 7e-8; the
// highest power first. All coefficients are positive: nothing cancels.
inline constexpr int kErfcxTerms = 5;
inline constexpr float kErfcxAbove[kErfcxTerms] = {0.0447348952293396f, 0.2831217646598816f,
                                                   0.8410991430282593f, 1.3387341499328613f, 1.0f};
inline constexpr float kErfcxBelow[kErfcxTerms + 1] = {0.07929053157567978f, 0.5018214583396912f,
                                                       1.530394434928894f,   2.6248955726623535f,
                                                       2.467116594314575f,   1.0f};

// |t| / sqrt(df) beyond which a Student-T's tail, below 1e-18, stays as it is.
inline constexpr float kStudentReach = 1e9f;
inline constexpr int kStudentRun = 8;  // blocks whose sums stay in float32

}  // namespace toto::kernels
