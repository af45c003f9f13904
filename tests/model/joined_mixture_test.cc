// The average of several mixtures, against the exact distribution function of each.
#include "model/joined_mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "model/mixture_cdf.h"

namespace toto {
namespace {

constexpr std::size_t kComponents = 24;

// How the mixtures of a set differ from each other and in themselves.
struct Kind {
  const char* name;
  double df_spread, loc_spread, scale_spread;  // of logarithm, location, logarithm
  double shift, shift_spread, stretch;
  bool runaway;  // one mixture is 1e15 times as far out as the others
};
constexpr Kind kKinds[] = {
    {"prices", 1.5, 0.7, 0.6, 1e5, 300, 200, false},
    {"narrow and wide components", 1.5, 3, 2.5, 1e5, 300, 200, false},
    {"df from 2 to a Gaussian", 6, 0.7, 0.6, 1e5, 300, 200, false},
    {"one path ran away", 1.5, 0.7, 0.6, 1e5, 300, 200, true},
    {"a nearly constant series", 1.5, 0.7, 0.6, 100, 1e-3, 1e-3, false},
};

// Mixtures with the memory they and their average look at.
class MixtureSet {
 public:
  MixtureSet(const Kind& kind, std::size_t count, unsigned seed)
      : workspaces_(count),
        blocks_(JoinedMixture::num_blocks(count, kComponents)),
        means_(count),
        squares_(count) {
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal;
    for (std::size_t j = 0; j < count; ++j) {
      std::vector<double> df, loc, scale, logits;
      for (std::size_t i = 0; i < kComponents; ++i) {
        df.push_back(2 + std::exp(kind.df_spread * normal(engine)));
        loc.push_back(kind.loc_spread * normal(engine));
        scale.push_back(std::exp(kind.scale_spread * normal(engine) - 0.7));
        logits.push_back(2 * normal(engine));
      }
      Affine affine{kind.shift + kind.shift_spread * normal(engine), kind.stretch};
      if (kind.runaway && j == 1) affine = {1e15 * kind.shift, 1e15 * kind.stretch};
      workspaces_[j].resize(StudentMixture::workspace_doubles(kComponents));
      mixtures_.emplace_back(workspaces_[j], MixtureParameters{df, loc, scale, logits}, affine);
    }
  }

  JoinedMixture joined(const Kernels& kernels) {
    JoinedMixture joined({blocks_, means_, squares_}, kernels);
    std::vector<double> memory(StoredMixture::num_doubles(kComponents));
    for (const StudentMixture& mixture : mixtures_) {
      StoredMixture stored(memory.data(), kComponents);
      stored.store(mixture);
      joined.add(stored);
    }
    joined.finish();
    return joined;
  }
  // The mean over the mixtures of something their exact distribution functions say.
  template <typename Ask>
  double average(const Ask& ask) const {
    double total = 0;
    for (const StudentMixture& mixture : mixtures_) total += ask(MixtureCdf(mixture));
    return total / static_cast<double>(mixtures_.size());
  }

 private:
  std::vector<std::vector<double>> workspaces_;
  std::vector<StudentBlock> blocks_;
  std::vector<double> means_, squares_;
  std::vector<StudentMixture> mixtures_;
};

const std::vector<double> kJoinedLevels = {1e-6, 1e-3, 0.01, 0.1, 0.2,  0.3,   0.4,     0.5,
                                           0.6,  0.7,  0.8,  0.9, 0.99, 0.999, 1 - 1e-6};

TEST(JoinedMixture, QuantilesAreThoseOfTheAverage) {
  for (const Kind& kind : kKinds) {
    for (const std::size_t count : {1, 3, 16, 256}) {
      MixtureSet set(kind, count, static_cast<unsigned>(count));
      const JoinedMixture joined = set.joined(kernels_for(Isa::automatic));
      for (const double p : kJoinedLevels) {
        const double y = joined.quantile(p);
        const double below = set.average([y](const MixtureCdf& cdf) { return cdf.cdf(y); });
        const double above = set.average([y](const MixtureCdf& cdf) { return cdf.survival(y); });
        EXPECT_NEAR(below, p, 2e-7) << kind.name << ", " << count << " mixtures";
        EXPECT_NEAR(p < 0.5 ? below / p : above / (1 - p), 1, 1e-4) << kind.name << " at " << p;
        EXPECT_NEAR(joined.probability_above(y), above, 2e-7) << kind.name << " at " << p;
      }
    }
  }
}

TEST(JoinedMixture, MomentsAndTrimmedMeansAreThoseOfTheAverage) {
  for (const Kind& kind : kKinds) {
    if (kind.runaway) continue;  // its moments are the runaway path's alone
    MixtureSet set(kind, 64, 5);
    const JoinedMixture joined = set.joined(kernels_for(Isa::automatic));
    const double mean = set.average([](const MixtureCdf& cdf) { return cdf.mean(); });
    EXPECT_NEAR(joined.mean(), mean, 1e-12 * std::abs(mean)) << kind.name;
    const double variance = set.average([mean](const MixtureCdf& cdf) {
      const double deviation = cdf.standard_deviation(), distance = cdf.mean() - mean;
      return deviation * deviation + distance * distance;
    });
    EXPECT_NEAR(joined.standard_deviation() / std::sqrt(variance), 1, 1e-9) << kind.name;
    const double low = joined.quantile(0.1), high = joined.quantile(0.75);
    // About the mean: the mass between the two, right to 1e-7, must not count in units of prices.
    const double part = set.average([=](const MixtureCdf& cdf) {
      return cdf.partial_mean(low, high) - mean * (cdf.cdf(high) - cdf.cdf(low));
    });
    const double kept = mean + part / 0.65;
    EXPECT_NEAR(joined.trimmed_mean(0.1, 0.25), kept, 1e-5 * (high - low)) << kind.name;
  }
}

TEST(JoinedMixture, HasTheSameBitsOnEveryInstructionSet) {
  for (const Kind& kind : kKinds) {
    for (const std::size_t count : {1, 5, 40}) {
      MixtureSet set(kind, count, 9);
      std::vector<std::uint64_t> first;
      for (const Isa isa : all_isas()) {
        if (!isa_available(isa)) continue;
        const JoinedMixture joined = set.joined(kernels_for(isa));
        std::vector<std::uint64_t> bits = {
            std::bit_cast<std::uint64_t>(joined.mean()),
            std::bit_cast<std::uint64_t>(joined.trimmed_mean(0.2, 0.2))};
        for (const double p : kJoinedLevels) {
          bits.push_back(std::bit_cast<std::uint64_t>(joined.quantile(p)));
        }
        if (first.empty()) first = bits;
        EXPECT_EQ(bits, first) << kind.name << " on " << name_of(isa);
      }
    }
  }
}

TEST(JoinedMixture, ALevelDoesNotDependOnWhatElseWasAsked) {
  MixtureSet set(kKinds[0], 32, 3);
  const Kernels& kernels = kernels_for(Isa::automatic);
  const double alone = set.joined(kernels).quantile(0.3);
  const JoinedMixture joined = set.joined(kernels);
  for (const double p : kJoinedLevels) joined.quantile(p);
  EXPECT_EQ(joined.quantile(0.3), alone);
}

TEST(JoinedMixture, AnswersNanForWhatHasNoMeaning) {
  MixtureSet set(kKinds[0], 2, 1);
  const JoinedMixture joined = set.joined(kernels_for(Isa::automatic));
  for (const double p : {0.0, 1.0, -1.0, 2.0, kNan}) EXPECT_TRUE(std::isnan(joined.quantile(p)));
  EXPECT_TRUE(std::isnan(joined.trimmed_mean(0.5, 0.5)));
  EXPECT_TRUE(std::isnan(joined.probability_above(kNan)));

  std::vector<double> workspace(StudentMixture::workspace_doubles(1));
  const std::vector<double> df = {kNan}, loc = {0.0}, scale = {1.0};
  std::vector<StudentBlock> blocks(1);
  std::vector<double> means(1), squares(1);
  JoinedMixture damaged({blocks, means, squares}, kernels_for(Isa::automatic));
  std::vector<double> memory(StoredMixture::num_doubles(1));
  StoredMixture stored(memory.data(), 1);
  stored.store(StudentMixture(workspace, MixtureParameters{df, loc, scale, {}}, {}));
  EXPECT_TRUE(stored.empty());
  damaged.add(stored);
  damaged.finish();
  EXPECT_FALSE(damaged.valid());
  EXPECT_TRUE(std::isnan(damaged.mean()));
  EXPECT_TRUE(std::isnan(damaged.quantile(0.5)));
}

}  // namespace
}  // namespace toto
