// Eight weighted Student-T distributions, laid out so that one branch-free loop over the lanes
// evaluates all of them; compilers vectorise it without changing a bit.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace toto {

inline constexpr std::size_t kStudentLanes = 8;
using StudentRow = std::array<double, kStudentLanes>;

constexpr std::size_t student_blocks(std::size_t num_components) noexcept {
  return (num_components + kStudentLanes - 1) / kStudentLanes;
}

// Parameters, one component per lane. Domain: weight >= 0, df in [2, 1e30], scale in
// [1e-150, 1e150], all finite; an unused lane has weight 0.
struct StudentComponents {
  StudentRow weight, df, loc, scale;
};

// Coefficients for the evaluation. With a = df / 2, z = t^2 / df, y = 1 / (1 + z), s = log(1 + z),
// the upper tail of the standard Student-T is, by the recurrence of the incomplete beta function,
//
//   2 P(T > |t|) = I_y(a, 1/2) = y^a sqrt(1 - y) sum_{j < m} d_j y^j + I_y(a + m, 1/2),
//   d_j = Gamma(a + j + 1/2) / (Gamma(a + j + 1) sqrt(pi)),  m = kShift.
//
// Put y = e^-r into the beta integral and write S = a + m - 1/4, which is large now:
//
//   I_y(a + m, 1/2) ~ integral from s of e^(-S r) r^(-1/2) g(r) dr,  g(r) = sqrt((r/2) /
//   sinh(r/2)).
//
// g is even and analytic up to |r| = 2 pi; the first kTerms terms of its Taylor series integrate to
// erfc(sqrt(S s)) plus e^(-S s) sqrt(S s) times a polynomial in s. Where s is too large for that
// polynomial, the factor y^m has made the whole term vanish. With 12 shifts and 6 terms the error
// of the method is 1e-16, relative 1e-15, for every df >= 2; large df become the Gaussian with no
// special case. The d_j follow from the integral's own normalisation: no gamma function is needed.
struct StudentLanes {
  static constexpr std::size_t kShift = 12;
  static constexpr std::size_t kTerms = 6;

  StudentRow weight, loc, inv_scale;
  StudentRow inv_sqrt_df, half_df, shifted;  // df^(-1/2), a, S
  StudentRow largest_ratio;  // |t| / sqrt(df) is clamped to this: the tail is 1e-308 there
  StudentRow peak;           // weight / scale * the standard density at 0
  StudentRow slope;          // (df + 1) / (df scale)
  StudentRow moment;         // scale^2 df / (df - 1)
  std::array<StudentRow, kShift> near;         // d_j
  std::array<StudentRow, 2 * kTerms - 2> far;  // the polynomial in s
};

void prepare_lanes(const StudentComponents& components, StudentLanes& lanes) noexcept;

// A mixture at one point: P(X <= x) and P(X > x), each accurate where it is small, the density, its
// first two derivatives, and E[X; X > x], the part of the mean above x.
struct MixtureValue {
  double below, above, density, slope, bend, mean_above;
};

// Sums over the blocks lane by lane, then across the lanes: the same order for any vector width.
MixtureValue evaluate_mixture(std::span<const StudentLanes> blocks, double x) noexcept;

}  // namespace toto
