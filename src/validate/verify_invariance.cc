// Same bits everywhere: mean, quantiles and samples must not depend on threads, batch, instruction
// set or optimised mode.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "validate/verify_measure.h"

namespace toto::validate {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3};
constexpr int kShuffles = 3;

// The forecasts of one engine, as bits: [series][number].
using Bits = std::vector<std::vector<std::uint32_t>>;

std::size_t num_values(const Bits& bits) {
  return std::accumulate(bits.begin(), bits.end(), std::size_t{0},
                         [](std::size_t sum, const auto& some) { return sum + some.size(); });
}

// The number of differing words; all of a series if the sizes differ.
std::size_t num_different(const Bits& a, const Bits& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::span<const std::uint32_t> nothing;
    count += validate::num_different(i < a.size() ? std::span(a[i]) : nothing,
                                     i < b.size() ? std::span(b[i]) : nothing);
  }
  return count;
}

struct InvarianceWorkload {
  std::vector<Series> series;              // of different lengths and numbers of variates
  std::array<ForecastOptions, 2> options;  // exact, and sampled beyond the first patch
};

InvarianceWorkload make_workload(const ModelInfo& model, std::uint64_t seed) {
  const int patch = model.facts.patch;
  const bool large = is_large(model);
  InvarianceWorkload work;
  const std::pair<int, int> shapes[] = {// variates, length
                                        {1, 2 * patch},
                                        {2, patch + 1},
                                        {1, large ? 1 : 5 * patch - 3},
                                        {3, patch / 2 + 1}};
  for (const auto& [variates, length] : shapes) {
    const std::string id = fmt::format("series {}", work.series.size());
    work.series.push_back(make_series(id, variates, length, seed));
  }
  work.options[0] = {.horizon = patch, .scale = 1, .seed = seed};
  work.options[1] = {.horizon = patch + 2,
                     .num_samples = large ? 2 : 8,
                     .scale = 1,
                     .seed = seed,
                     .keep_samples = true};
  return work;
}

// All forecasts of the workload with the series in this order, in one batch. Returns the bits in
// the workload's own order.
Bits forecast_bits(Runner& runner, const InvarianceWorkload& work,
                   std::span<const std::size_t> order) {
  std::vector<Series> batch;
  for (const std::size_t i : order) batch.push_back(work.series[i]);
  Bits bits(work.series.size());
  for (const ForecastOptions& options : work.options) {
    const std::vector<Forecast> forecasts = runner.forecast(batch, options);
    for (std::size_t i = 0; i < std::min(order.size(), forecasts.size()); ++i) {
      const std::vector<std::uint32_t> some = bits_of(forecasts[i]);
      bits[order[i]].insert(bits[order[i]].end(), some.begin(), some.end());
    }
  }
  return bits;
}

std::vector<std::size_t> natural_order(std::size_t size) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// Fisher-Yates with our own random numbers: the same orders on every machine.
std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed, int round) {
  std::vector<std::size_t> order = natural_order(size);
  for (std::size_t i = size - 1; i > 0; --i) {
    const RandomWords words = random_words(
        {.seed = seed, .sample = std::uint32_t(round), .step = static_cast<std::uint32_t>(i)});
    std::swap(order[i], order[words[0] % (i + 1)]);
  }
  return order;
}

class Invariance {
 public:
  Invariance(const VerifyOptions& options, const ModelInfo& model, VerifyReport& report)
      : options_(options), report_(report), work_(make_workload(model, options.seed)) {}

  void check_batch(Mode mode) {
    const std::string complaint = complaint_of([&] {
      const auto runner = options_.load(options_.model, engine_options(options_, mode));
      // Each series alone: everything else is compared with these.
      Bits alone(work_.series.size());
      for (std::size_t i = 0; i < work_.series.size(); ++i) {
        alone[i] = forecast_bits(*runner, work_, std::span(&i, 1))[i];
      }
      baselines_[mode] = std::move(alone);
      compare_batches(mode, *runner);
    });
    if (!complaint.empty()) {
      report_.checks.push_back(failed_check(name_for(mode, "batch"), complaint));
    }
  }

  void check_threads(Mode mode) {
    compare_engines(mode, "threads", std::size(kThreadCounts),
                    [](std::size_t i, EngineOptions& engine) {
                      engine.threads = kThreadCounts[i];
                      return fmt::format("{} threads", kThreadCounts[i]);
                    });
  }

  void check_isas(Mode mode) {
    const std::string name = name_for(mode, "isa");
    if (mode == Mode::reference) {
      report_.skipped.push_back({name, "reference mode has no vector kernels that could differ"});
      return;
    }
    std::vector<Isa> available;
    for (const Isa isa : all_isas()) {
      if (isa_available(isa)) {
        available.push_back(isa);
      } else {
        report_.skipped.push_back({fmt::format("{}/{}", name, name_of(isa)),
                                   "this CPU does not have these instructions"});
      }
    }
    if (available.size() < 2) {
      report_.skipped.push_back(
          {name, fmt::format("only {} is available here: there is nothing to compare with",
                             available.empty() ? "none" : name_of(available[0]))});
      return;
    }
    compare_engines(mode, "isa", available.size(), [&](std::size_t i, EngineOptions& engine) {
      engine.isa = available[i];
      return std::string(name_of(available[i]));
    });
  }

  void check_modes() {
    constexpr const char* kName = "invariance/modes";
    std::vector<Mode> optimised;
    std::copy_if(options_.modes.begin(), options_.modes.end(), std::back_inserter(optimised),
                 [](Mode mode) { return mode != Mode::reference; });
    if (optimised.size() < 2) {
      report_.skipped.push_back(
          {kName, fmt::format("{} optimised mode is verified: there is nothing to compare with",
                              optimised.empty() ? "no" : "only one")});
      return;
    }
    std::size_t different = 0;
    std::string names;
    for (const Mode mode : optimised) {
      names += names.empty() ? "" : ", ";
      names += name_of(mode);
      // A mode that did not run counts as different in all numbers.
      different += num_different(baselines_[optimised[0]], baselines_[mode]);
    }
    const std::size_t values = num_values(baselines_[optimised[0]]);
    report_.checks.push_back(
        equality_check(kName, different, values, fmt::format("{}; {} numbers", names, values)));
  }

 private:
  static std::string name_for(Mode mode, const char* what) {
    return fmt::format("invariance/{}/{}", name_of(mode), what);
  }

  void compare_batches(Mode mode, Runner& runner) {
    const Bits& alone = baselines_[mode];
    std::size_t different = 0;
    for (int round = 0; round < kShuffles; ++round) {
      const auto order = shuffled_order(work_.series.size(), options_.seed, round);
      different += num_different(alone, forecast_bits(runner, work_, order));
    }
    add_check(mode, "batch", different,
              fmt::format("{} series alone and in {} shuffled batches", alone.size(), kShuffles));
  }

  // Compares engines that differ in one option with the baseline. `choose` sets the option and
  // returns its name.
  template <typename Choose>
  void compare_engines(Mode mode, const char* what, std::size_t count, const Choose& choose) {
    std::size_t different = 0;
    std::string names;
    const std::vector<std::size_t> order = natural_order(work_.series.size());
    for (std::size_t i = 0; i < count; ++i) {
      EngineOptions engine = engine_options(options_, mode);
      const std::string name = choose(i, engine);
      const std::string complaint = complaint_of([&] {
        const auto runner = options_.load(options_.model, engine);
        different += num_different(baselines_[mode], forecast_bits(*runner, work_, order));
      });
      if (!complaint.empty()) {
        report_.checks.push_back(
            failed_check(name_for(mode, what), fmt::format("{}: {}", name, complaint)));
        return;
      }
      names += names.empty() ? name : ", " + name;
    }
    add_check(mode, what, different, names);
  }

  void add_check(Mode mode, const char* what, std::size_t different, const std::string& compared) {
    const std::size_t values = num_values(baselines_[mode]);
    report_.checks.push_back(equality_check(
        name_for(mode, what), different, values,
        fmt::format("{} numbers differ; {}, {} numbers each", different, compared, values)));
  }

  const VerifyOptions& options_;
  VerifyReport& report_;
  InvarianceWorkload work_;
  std::map<Mode, Bits> baselines_;
};

}  // namespace

void add_invariance_jobs(const VerifyOptions& options, const ModelInfo& model, VerifyReport& report,
                         Jobs& jobs) {
  const auto invariance = std::make_shared<Invariance>(options, model, report);
  for (const Mode mode : options.modes) {
    jobs.push_back([invariance, mode] { invariance->check_batch(mode); });
    jobs.push_back([invariance, mode] { invariance->check_threads(mode); });
    jobs.push_back([invariance, mode] { invariance->check_isas(mode); });
  }
  jobs.push_back([invariance] { invariance->check_modes(); });
}

}  // namespace toto::validate
