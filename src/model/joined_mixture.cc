#include "model/joined_mixture.h"

#include <algorithm>
#include <cmath>

namespace toto {
namespace {

constexpr double kJoinedNorm = 0.5641895835477563;
// Moments of the Taylor series behind StudentBlock; model/student_lanes.cc has more of them.
constexpr double kMoment1 = -0.015625, kMoment2 = 0.0025634765625;
constexpr double kLargestDf = 1e8;  // a Gaussian to 1e-9
constexpr double kJoinedTolerance =
    2e-7;  // of |P(Y <= y) - p|; the sums themselves are right to 3e-7
constexpr double kRelativeTolerance = 2e-5;
constexpr int kMaxSolveRounds = 200;
// Where the first evaluations are, in standard deviations from the middle.
constexpr std::array kFirstProbes = {-2.4, -1.35, -0.6, 0.0, 0.6, 1.35, 2.4};

float bounded(double x) noexcept { return static_cast<float>(std::clamp(x, -1e30, 1e30)); }

void set_lane(StudentBlock& block, std::size_t lane, double weight, double df, double loc,
              double scale) noexcept {
  const double a = 0.5 * df, shifted = a + (kStudentShift - 0.25), inverse = 1.0 / shifted;
  // What the terms after the first and after the second add, as in student_lanes.cc.
  const double rest1 = inverse * inverse * kMoment2;
  const double rest0 = inverse * inverse * (kMoment1 + rest1);
  const double norm = kJoinedNorm / (1.0 + rest0);
  double d = std::sqrt(shifted) * norm / (a + kStudentShift);
  for (int j = kStudentShift - 1; j >= 0; --j) {
    d *= (a + (j + 1.0)) / (a + (j + 0.5));
    block.near[j][lane] = static_cast<float>(d);
  }
  block.far[0][lane] = static_cast<float>(2.0 * norm * rest0);
  block.far[1][lane] = static_cast<float>(2.0 / 1.5 * norm * rest0 * shifted);
  block.far[2][lane] = static_cast<float>(2.0 / (1.5 * 2.5) * norm * rest1);
  block.far[3][lane] = static_cast<float>(2.0 / (1.5 * 2.5 * 3.5) * norm * rest1 * shifted);
  block.loc_high[lane] = bounded(loc);
  block.loc_low[lane] = bounded(loc - block.loc_high[lane]);
  block.inv_scale[lane] = bounded(1.0 / scale);
  block.weight[lane] = static_cast<float>(weight);
  block.inv_sqrt_df[lane] = static_cast<float>(1.0 / std::sqrt(df));
  block.half_df[lane] = static_cast<float>(a);
  block.peak[lane] = bounded(weight / scale * (d * std::sqrt(0.5 * a)));
  block.moment[lane] = bounded(scale * scale * (df / (df - 1.0)));
}

double median_of(std::span<double> values) noexcept {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void StoredMixture::store(const StudentMixture& mixture) noexcept {
  if (!mixture.valid()) return store_nothing();
  numbers_[0] = mixture.affine().stretch;
  numbers_[1] = mixture.mean();
  numbers_[2] = mixture.variance();
  numbers_[3] = mixture.affine().shift;
  for (std::size_t i = 0; i < count_; ++i) {
    loc_[i] = mixture.loc()[i];
    rest_[i] = static_cast<float>(mixture.weights()[i]);
    rest_[count_ + i] = static_cast<float>(std::min(mixture.df()[i], kLargestDf));
    rest_[2 * count_ + i] = bounded(mixture.scale()[i]);
  }
}

void StoredMixture::store_nothing() noexcept { numbers_[0] = 0; }

void JoinedMixture::add(const StoredMixture& mixture) noexcept {
  if (mixture.empty()) return;
  if (num_mixtures_ == 0) {
    origin_ = mixture.mean();
    unit_ = mixture.stretch();
    lowest_ = highest_ = 0;
  }
  const double stretch = mixture.stretch() / unit_;
  const double shift = (mixture.shift() - origin_) / unit_;
  double typical = 0;  // the spread that matches the 10 % and 90 % quantiles, squared
  for (std::size_t i = 0; i < mixture.weights().size(); ++i) {
    const double df = mixture.df()[i], weight = mixture.weights()[i];
    const double loc = shift + stretch * mixture.loc()[i], scale = stretch * mixture.scale()[i];
    set_lane(memory_.blocks[num_components_ / kStudentBlock], num_components_ % kStudentBlock,
             weight, df, loc, scale);
    ++num_components_;
    typical += weight * (loc * loc + scale * scale * (df / (df - 1.1)));
    lowest_ = std::min(lowest_, loc);
    highest_ = std::max(highest_, loc);
    widest_ = std::max(widest_, scale);
  }
  const double mean = (mixture.mean() - origin_) / unit_;
  memory_.means[num_mixtures_] = mean;
  memory_.squares[num_mixtures_] = typical - mean * mean;
  ++num_mixtures_;
  sum_of_means_ += mean;
  sum_of_squares_ += mean * mean + mixture.variance() / unit_ / unit_;
}

void JoinedMixture::finish() noexcept {
  if (!valid()) return;
  for (std::size_t i = num_components_; i % kStudentBlock != 0; ++i) {
    set_lane(memory_.blocks[i / kStudentBlock], i % kStudentBlock, 0.0, 2.0, 0.0, 1.0);
  }
  // Medians, not means: one path that ran away must not lead the search astray.
  const std::span<double> means = memory_.means.first(num_mixtures_);
  const std::span<double> squares = memory_.squares.first(num_mixtures_);
  double middle = 0;
  {
    // The squares are per mixture, so they are taken about the middle before means are reordered.
    std::array<double, 64> sample;  // spread evenly over the mixtures
    const std::size_t count = std::min(sample.size(), means.size());
    for (std::size_t i = 0; i < count; ++i) sample[i] = means[i * means.size() / count];
    middle = median_of({sample.data(), count});
  }
  for (std::size_t i = 0; i < means.size(); ++i) {
    squares[i] += (means[i] - middle) * (means[i] - middle);
  }
  const double spread = std::sqrt(std::max(median_of(squares), 0.0));
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    probes_[i] = probe(middle + spread * kFirstProbes[i]);
  }
}

double JoinedMixture::mean() const noexcept {
  if (!valid()) return kNan;
  return origin_ + unit_ * (sum_of_means_ / static_cast<double>(num_mixtures_));
}

double JoinedMixture::standard_deviation() const noexcept {
  if (!valid()) return kNan;
  const double count = static_cast<double>(num_mixtures_), mean = sum_of_means_ / count;
  return unit_ * std::sqrt(std::max(sum_of_squares_ / count - mean * mean, 0.0));
}

JoinedMixture::Probe JoinedMixture::probe(double x) const noexcept {
  const double share = 1.0 / static_cast<double>(num_mixtures_);
  const auto blocks = static_cast<int>((num_components_ + kStudentBlock - 1) / kStudentBlock);
  const StudentSums sums = kernels_->student_sums(memory_.blocks.data(), blocks, x);
  return {x,
          {.below = sums.below * share,
           .above = sums.above * share,
           .density = sums.density * share,
           .mean_above = sums.mean_above * share}};
}

double JoinedMixture::probability_above(double y) const noexcept {
  if (!valid() || std::isnan(y)) return kNan;
  return std::clamp(probe((y - origin_) / unit_).sums.above, 0.0, 1.0);
}

double JoinedMixture::residual(const Probe& probe, const Level& level) const noexcept {
  return level.upper ? level.tail - probe.sums.above : probe.sums.below - level.tail;
}

JoinedMixture::Probe JoinedMixture::solve(const Level& level) const noexcept {
  const double tolerance = std::min(kJoinedTolerance, kRelativeTolerance * level.tail);
  // |T| shrinks as df grows, so no component's quantile is further out than that of df = 2.
  const double outer =
      widest_ * (1.0 - 2.0 * level.tail) / std::sqrt(2.0 * level.tail * (1.0 - level.tail));
  Probe low{.x = lowest_ - (level.upper ? 0.0 : outer), .sums = {}};
  Probe high{.x = highest_ + (level.upper ? outer : 0.0), .sums = {}};
  bool low_known = false, high_known = false;
  for (const Probe& known : probes_) {
    if (residual(known, level) < 0) {
      if (known.x > low.x || !low_known) low = known;
      low_known = true;
    } else if (!high_known) {
      high = known;
      high_known = true;
    }
  }
  double previous = 1.0;
  for (int round = 0; round < kMaxSolveRounds; ++round) {
    double x = 0.5 * low.x + 0.5 * high.x;
    if (low_known && high_known && previous > 0) {
      // The cubic through both ends with their slopes, as a function of the probability.
      const double from = residual(low, level), width = residual(high, level) - from;
      const double u = -from / width, v = 1.0 - u;
      const double cubic = low.x * v * v * (1.0 + 2.0 * u) + high.x * u * u * (1.0 + 2.0 * v) +
                           width * u * v * (v / low.sums.density - u / high.sums.density);
      if (cubic > low.x && cubic < high.x) x = cubic;
    } else if (low_known != high_known && previous > 0) {
      // Beyond the first probes: a step by the slope, at most the distance to the far probe.
      const Probe& edge = low_known ? low : high;
      const double reach = probes_.back().x - probes_.front().x;
      const double step = std::clamp(-residual(edge, level) / edge.sums.density, -reach, reach);
      if (edge.x + step > low.x && edge.x + step < high.x) x = edge.x + step;
    }
    if (!(x > low.x && x < high.x)) return low_known ? low : high;  // no double in between
    const Probe next = probe(x);
    const double distance = residual(next, level);
    if (std::abs(distance) <= tolerance) {
      // The slope takes the answer to the root itself, so that neighbouring steps differ smoothly.
      const double corrected = x - distance / next.sums.density;
      if (!(corrected > low.x && corrected < high.x)) return next;
      Probe answer = next;
      answer.x = corrected;
      return answer;
    }
    // Unless the residual falls to a quarter the next point halves the bracket.
    previous = previous > 0 && std::abs(distance) > 0.25 * previous ? 0.0 : std::abs(distance);
    if (distance < 0) {
      low = next;
      low_known = true;
    } else {
      high = next;
      high_known = true;
    }
    if (high.x - low.x <= 0x1p-40 * std::max(std::abs(low.x), std::abs(high.x))) return high;
  }
  return high;
}

double JoinedMixture::quantile(double p) const noexcept {
  if (!valid() || !(p > 0.0 && p < 1.0)) return kNan;
  const Level level = p <= 0.5 ? Level{p, false} : Level{1.0 - p, true};
  return origin_ + unit_ * solve(level).x;
}

double JoinedMixture::trimmed_mean(double lower_share, double upper_share) const noexcept {
  if (!valid() || !(lower_share >= 0 && upper_share >= 0 && lower_share + upper_share < 1)) {
    return kNan;
  }
  // The integral of the quantile function; see MixtureCdf::trimmed_mean.
  double kept = sum_of_means_ / static_cast<double>(num_mixtures_);
  const auto level_of = [](double tail, bool upper) {
    return tail <= 0.5 ? Level{tail, upper} : Level{1.0 - tail, !upper};
  };
  if (lower_share > 0) {
    const Probe cut = probe(solve(level_of(lower_share, false)).x);
    kept = cut.sums.mean_above + cut.x * (cut.sums.below - lower_share);
  }
  if (upper_share > 0) {
    const Probe cut = probe(solve(level_of(upper_share, true)).x);
    kept -= cut.sums.mean_above + cut.x * (upper_share - cut.sums.above);
  }
  return origin_ + unit_ * (kept / (1.0 - lower_share - upper_share));
}

}  // namespace toto
