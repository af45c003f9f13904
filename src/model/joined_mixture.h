// The average of several predicted mixtures: what many simulated paths say about one step together.
//
// Joining the paths' distributions, instead of taking one draw from each, leaves only the noise of
// where the paths are and not that of the draws: smooth bands from a few hundred paths.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "model/student_mixture.h"

namespace toto {

// One mixture kept until all that are joined are known, in the caller's memory: 20 bytes per
// component. The evaluation works in float32, except for locations, whose differences count.
class StoredMixture {
 public:
  static constexpr std::size_t num_doubles(std::size_t num_components) noexcept {
    return 4 + num_components + (3 * num_components + 1) / 2;
  }
  // A view of `memory`, which has num_doubles() elements.
  StoredMixture(double* memory, std::size_t num_components) noexcept
      : numbers_(memory),
        loc_(memory + 4),
        rest_(reinterpret_cast<float*>(loc_ + num_components)),
        count_(num_components) {}

  void store(const StudentMixture& mixture) noexcept;  // of this number of components
  void store_nothing() noexcept;                       // add() leaves it out

  bool empty() const noexcept { return numbers_[0] == 0; }
  double mean() const noexcept { return numbers_[1]; }
  double variance() const noexcept { return numbers_[2]; }
  double stretch() const noexcept { return numbers_[0]; }
  double shift() const noexcept { return numbers_[3]; }
  std::span<const double> loc() const noexcept { return {loc_, count_}; }
  std::span<const float> weights() const noexcept { return {rest_, count_}; }
  std::span<const float> df() const noexcept { return {rest_ + count_, count_}; }
  std::span<const float> scale() const noexcept { return {rest_ + 2 * count_, count_}; }

 private:
  double* numbers_;  // stretch (0: empty), mean, variance, shift
  double* loc_;
  float* rest_;  // weights, df, scale
  std::size_t count_;
};

// A view of the caller's memory; one thread at a time. Every result depends on the mixtures, their
// order and its own arguments alone, not on what was asked before. Everything is NaN unless
// valid(), that is, unless a mixture was added that is not empty.
class JoinedMixture {
 public:
  // What `add` fills: [num_blocks], and [mixture] twice.
  struct Memory {
    std::span<StudentBlock> blocks;
    std::span<double> means, squares;
  };
  static constexpr std::size_t num_blocks(std::size_t num_mixtures,
                                          std::size_t num_components) noexcept {
    return (num_mixtures * num_components + kStudentBlock - 1) / kStudentBlock;
  }

  JoinedMixture(const Memory& memory, const Kernels& kernels) noexcept
      : memory_(memory), kernels_(&kernels) {}

  void add(const StoredMixture& mixture) noexcept;
  // After the last mixture and before the first question. Reorders the memory's means.
  void finish() noexcept;

  bool valid() const noexcept { return num_mixtures_ > 0; }
  double mean() const noexcept;
  double standard_deviation() const noexcept;  // +Inf where a component has df == 2
  double probability_above(double y) const noexcept;
  // A point y with |P(Y <= y) - p| <= 1e-6 for p inside (0, 1), NaN otherwise.
  double quantile(double p) const noexcept;
  // The mean after a share of the probability is cut from either end; lower + upper < 1, NaN
  // otherwise.
  double trimmed_mean(double lower_share, double upper_share) const noexcept;

 private:
  // The distribution at one point, in units of the first mixture: x = (y - origin_) / unit_.
  struct Probe {
    double x = 0;
    StudentSums sums;
  };
  // A level as the mass of the nearer end.
  struct Level {
    double tail;  // in (0, 1/2]
    bool upper;   // the tail is the mass above
  };

  Probe probe(double x) const noexcept;
  double residual(const Probe& probe, const Level& level) const noexcept;
  Probe solve(const Level& level) const noexcept;

  Memory memory_;
  const Kernels* kernels_;
  std::size_t num_components_ = 0;
  std::size_t num_mixtures_ = 0;
  double origin_ = 0, unit_ = 1;
  double sum_of_means_ = 0, sum_of_squares_ = 0;  // in units, about the origin
  double lowest_ = 0, highest_ = 0, widest_ = 0;  // location, location, scale: in units
  std::array<Probe, 7> probes_;                   // ascending; every answer starts from them
};

}  // namespace toto
