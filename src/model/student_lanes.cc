#include "model/student_lanes.h"

#include <cmath>

#include "base/elementary.h"

namespace toto {
namespace {

constexpr std::size_t kShift = StudentLanes::kShift;
constexpr std::size_t kTerms = StudentLanes::kTerms;
constexpr double kInvSqrtPi = 0.5641895835477563;

// The moments of g: (1/2)_{2n}, a rising factorial, times g's Taylor coefficient of r^(2n).
constexpr std::array<double, kTerms> kMoments = {1.0,
                                                 -0.015625,
                                                 0.0025634765625,
                                                 -0.0012798309326171875,
                                                 0.0013435110449790955,
                                                 -0.0024328966392204165};

double sum(const StudentRow& row) noexcept {
  return ((row[0] + row[4]) + (row[2] + row[6])) + ((row[1] + row[5]) + (row[3] + row[7]));
}

// elementary::polynomial with coefficients that differ by lane.
template <std::size_t I, std::size_t N>
double every_second(const std::array<StudentRow, N>& c, std::size_t lane, double x2) noexcept {
  if constexpr (I + 2 < N) {
    return c[I][lane] + x2 * every_second<I + 2>(c, lane, x2);
  } else {
    return c[I][lane];
  }
}

template <std::size_t N>
double polynomial(const std::array<StudentRow, N>& c, std::size_t lane, double x) noexcept {
  const double x2 = x * x;
  return every_second<0>(c, lane, x2) + x * every_second<1>(c, lane, x2);
}

struct LaneValues {
  StudentRow t;        // (x - loc) / scale
  StudentRow tail;     // weight * P(T > |t|)
  StudentRow density;  // weight * density
  StudentRow spread;   // 1 + t^2 / df
  StudentRow slope, bend;
};

LaneValues evaluate_lanes(const StudentLanes& lanes, double x) noexcept {
  LaneValues out;  // a local variable cannot alias `lanes`, so the loop vectorises
  for (std::size_t i = 0; i < kStudentLanes; ++i) {
    const double t = (x - lanes.loc[i]) * lanes.inv_scale[i];
    const double unbounded = std::abs(t) * lanes.inv_sqrt_df[i];
    const double root_z = unbounded < lanes.largest_ratio[i] ? unbounded : lanes.largest_ratio[i];
    const double z = root_z * root_z;
    const double one = 1.0 + z;
    const double y = 1.0 / one;
    const double s = elementary::log1p_given(z, one, y);
    const double root_y = std::sqrt(y);
    const double power = elementary::exp_in_range(-lanes.half_df[i] * s);  // y^a
    const double root_u = std::sqrt(lanes.shifted[i] * s);
    const double remainder = elementary::erfcx(root_u) + root_u * polynomial(lanes.far, i, s);
    const double y2 = y * y;
    const double y4 = y2 * y2;
    const double y11 = (y4 * y4) * (y2 * y);
    // sqrt(1 - y) is root_y root_z, and e^(-S s) is y^(a + m - 1/4).
    const double sum_of_terms =
        root_y * (root_z * polynomial(lanes.near, i, y) + y11 * std::sqrt(root_y) * remainder);
    out.tail[i] = 0.5 * lanes.weight[i] * power * sum_of_terms;
    const double density = lanes.peak[i] * (power * root_y);
    const double slope = lanes.slope[i] * y;
    const double score = -slope * t;  // derivative of the log density
    out.t[i] = t;
    out.density[i] = density;
    out.spread[i] = one;
    out.slope[i] = density * score;
    out.bend[i] = density * (score * score - slope * lanes.inv_scale[i] * (2.0 * y - 1.0));
  }
  return out;
}

}  // namespace

void prepare_lanes(const StudentComponents& components, StudentLanes& lanes) noexcept {
  const auto& [weight, df, loc, scale] = components;
  StudentRow inverse, norm;
  for (std::size_t i = 0; i < kStudentLanes; ++i) {
    const double a = 0.5 * df[i];
    lanes.half_df[i] = a;
    lanes.shifted[i] = a + (kShift - 0.25);
    inverse[i] = 1.0 / lanes.shifted[i];
    lanes.largest_ratio[i] = std::sqrt(elementary::expm1(708.0 / a));
    lanes.inv_sqrt_df[i] = 1.0 / std::sqrt(df[i]);
  }
  // rest[n] = sum_{l > n} moment_l S^(2 (n - l)): the sum of the terms after n, in units of S^(-2
  // n).
  std::array<StudentRow, kTerms> rest{};
  for (std::size_t n = kTerms - 1; n-- > 0;) {
    for (std::size_t i = 0; i < kStudentLanes; ++i) {
      rest[n][i] = inverse[i] * inverse[i] * (kMoments[n + 1] + rest[n + 1][i]);
    }
  }
  for (std::size_t i = 0; i < kStudentLanes; ++i) norm[i] = kInvSqrtPi / (1.0 + rest[0][i]);
  double rising = 0.5;  // (1/2)_{k + 1}
  for (std::size_t n = 0; n + 1 < kTerms; ++n) {
    const double even = 1.0 / rising;
    const double odd = even / (2.0 * n + 1.5);
    rising *= (2.0 * n + 1.5) * (2.0 * n + 2.5);
    for (std::size_t i = 0; i < kStudentLanes; ++i) {
      lanes.far[2 * n][i] = even * norm[i] * rest[n][i];
      lanes.far[2 * n + 1][i] = odd * norm[i] * rest[n][i] * lanes.shifted[i];
    }
  }
  // d_m from the normalisation of the far integral, the others by their recurrence downwards.
  StudentRow d;
  for (std::size_t i = 0; i < kStudentLanes; ++i) {
    d[i] = std::sqrt(lanes.shifted[i]) * norm[i] / (lanes.half_df[i] + kShift);
  }
  for (std::size_t j = kShift; j-- > 0;) {
    for (std::size_t i = 0; i < kStudentLanes; ++i) {
      d[i] *= (lanes.half_df[i] + (j + 1.0)) / (lanes.half_df[i] + (j + 0.5));
    }
    lanes.near[j] = d;
  }
  for (std::size_t i = 0; i < kStudentLanes; ++i) {
    lanes.weight[i] = weight[i];
    lanes.loc[i] = loc[i];
    lanes.inv_scale[i] = 1.0 / scale[i];
    lanes.peak[i] = weight[i] * lanes.inv_scale[i] * (d[i] * std::sqrt(0.5 * lanes.half_df[i]));
    lanes.slope[i] = (df[i] + 1.0) / df[i] * lanes.inv_scale[i];
    lanes.moment[i] = scale[i] * scale[i] * (df[i] / (df[i] - 1.0));
  }
}

MixtureValue evaluate_mixture(std::span<const StudentLanes> blocks, double x) noexcept {
  StudentRow below{}, above{}, density{}, slope{}, bend{}, mean_above{};
  for (const StudentLanes& lanes : blocks) {
    const LaneValues values = evaluate_lanes(lanes, x);
    for (std::size_t i = 0; i < kStudentLanes; ++i) {
      const double body = lanes.weight[i] - values.tail[i];
      const double lower = values.t[i] < 0.0 ? values.tail[i] : body;
      const double upper = values.t[i] < 0.0 ? body : values.tail[i];
      below[i] += lower;
      above[i] += upper;
      density[i] += values.density[i];
      slope[i] += values.slope[i];
      bend[i] += values.bend[i];
      // Standard form: the integral of t f(t) from t on is (df + t^2) / (df - 1) f(t).
      mean_above[i] +=
          lanes.loc[i] * upper + lanes.moment[i] * values.spread[i] * values.density[i];
    }
  }
  return {sum(below), sum(above), sum(density), sum(slope), sum(bend), sum(mean_above)};
}

}  // namespace toto
