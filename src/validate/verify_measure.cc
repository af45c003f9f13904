#include "validate/verify_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/process_memory.h"
#include "base/stopwatch.h"

namespace toto::validate {
namespace {

constexpr int kSpeedRuns = 5;
constexpr int kShapeSamples = 3;

// ---------------------------------------------------------------------------------------- workload

ProductionCase shape_case(std::string what, Series series, int horizon) {
  return {ProductionSubject::shapes, std::move(what), std::move(series), horizon};
}

// Lengths around a patch, several variates, and every kind of series the engine accepts.
void add_shape_cases(int patch, int long_context, std::uint64_t seed,
                     std::vector<ProductionCase>& cases) {
  const auto series = [seed](const char* id, int variates, int length) {
    return make_series(id, variates, length, seed);
  };
  cases.push_back(shape_case("one point", series("point", 1, 1), 1));
  cases.push_back(
      shape_case("a patch less one", series("short", 1, std::max(patch - 1, 1)), patch));
  cases.push_back(shape_case("one patch", series("patch", 1, patch), patch + 1));
  cases.push_back(
      shape_case("a patch and one", series("over", 1, patch + 1), std::max(patch - 1, 1)));
  cases.push_back(
      shape_case("a ragged context", series("ragged", 1, long_context * patch - patch / 2), 1));
  cases.push_back(shape_case("three patches ahead", series("far", 1, patch), 3 * patch));
  cases.push_back(shape_case("two variates", series("two", 2, 2 * patch), patch + 1));
  cases.push_back(shape_case("five variates", series("five", 5, patch + 3), patch));

  Series groups = series("groups", 4, 2 * patch);
  groups.group_ids = {7, 7, -1, -1};
  cases.push_back(shape_case("two groups of variates", std::move(groups), patch));
  Series gaps = series("gaps", 1, 2 * patch);
  for (std::size_t t = 1; t < gaps.values.size(); t += 3) {
    gaps.values[t] = std::numeric_limits<float>::quiet_NaN();
  }
  cases.push_back(shape_case("missing values", std::move(gaps), patch));
  Series masked = series("masked", 1, 2 * patch);
  masked.mask.assign(masked.values.size(), 1);
  std::fill_n(masked.mask.begin(), patch + 1, std::uint8_t{0});
  cases.push_back(shape_case("a masked head", std::move(masked), patch));
  Series known = series("known", 3, 2 * patch);
  known.num_exogenous = 1;
  known.future_exogenous = series("future", 1, patch + 1).values;
  cases.push_back(shape_case("a known future", std::move(known), patch + 1));
  Series flat = series("flat", 1, 2 * patch);
  std::fill(flat.values.begin(), flat.values.end(), 7.25F);
  cases.push_back(shape_case("a constant", std::move(flat), patch));
  Series huge = series("huge", 1, 2 * patch);
  for (float& value : huge.values) value *= 1e30F;
  cases.push_back(shape_case("values around 1e31", std::move(huge), patch));
}

// ----------------------------------------------------------------------------------------- running

struct MeasuredEngine {
  MeasurePlan plan;
  std::unique_ptr<Runner> runner;
  std::optional<PeakMemory> memory;
};

double bytes_per_weight(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::int8:
      return 1;
  }
  return 4;
}

// Why a forecast is malformed, independently of its values; empty: it is not.
std::string malformed(const Forecast& forecast, const Series& series,
                      const ForecastOptions& options) {
  const std::size_t steps = std::size_t(series.num_variates) * options.horizon;
  const std::size_t levels = options.quantiles.size();
  if (forecast.mean.size() != steps || forecast.median.size() != steps ||
      forecast.quantiles.size() != levels * steps ||
      forecast.samples.size() != steps * options.num_samples) {
    return "the forecast has the wrong size";
  }
  for (const auto* values : {&forecast.mean, &forecast.median, &forecast.samples}) {
    if (!std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); })) {
      return "the forecast holds a number that is not finite";
    }
  }
  for (std::size_t i = 0; i < forecast.quantiles.size(); ++i) {
    const float value = forecast.quantiles[i];
    if (!std::isfinite(value)) return "a quantile is not finite";
    if (i >= steps && value < forecast.quantiles[i - steps]) return "the quantiles cross";
  }
  return {};
}

void run_shapes(MeasuredEngine& running, ProductionRun& measured) {
  for (const ProductionCase& item : *running.plan.cases) {
    if (item.subject != ProductionSubject::shapes) continue;
    ++measured.num_shapes;
    const ForecastOptions options{.horizon = item.horizon,
                                  .num_samples = kShapeSamples,
                                  .scale = 1,
                                  .seed = running.plan.options->seed,
                                  .keep_samples = true};
    std::string wrong;
    const std::string complaint = complaint_of([&] {
      const auto forecasts = running.runner->forecast(std::span(&item.series, 1), options);
      wrong = forecasts.size() == 1 ? malformed(forecasts[0], item.series, options)
                                    : "the answer is not one forecast";
    });
    if (!complaint.empty()) wrong = complaint;
    if (!wrong.empty()) measured.bad_shapes.push_back(fmt::format("{}: {}", item.what, wrong));
  }
}

void run_speed(MeasuredEngine& running, ProductionRun& measured) {
  const ProductionCase& item = running.plan.cases->front();
  const ForecastOptions options{.horizon = item.horizon, .scale = 1};
  measured.milliseconds = std::numeric_limits<double>::infinity();
  for (int run = 0; run <= kSpeedRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    (void)running.runner->forecast(std::span(&item.series, 1), options);
    const double time = milliseconds_since(start);
    if (run > 0) measured.milliseconds = std::min(measured.milliseconds, time);  // 0 warms up
  }
}

void run_determinism(MeasuredEngine& running, const ModelFacts& facts, ProductionRun& measured) {
  const std::uint64_t seed = running.plan.options->seed;
  const Series series = make_series("runs", 1, 2 * facts.patch - 1, seed);
  const ForecastOptions exact{.horizon = facts.patch, .scale = 1};
  const ForecastOptions sampled{.horizon = facts.first_block() + 1,
                                .num_samples = 2,
                                .scale = 1,
                                .seed = seed,
                                .keep_samples = true};
  std::vector<std::uint32_t> first;
  for (int run = 0; run < kDeterminismRuns; ++run) {
    std::vector<std::uint32_t> bits;
    for (const ForecastOptions* options : {&exact, &sampled}) {
      for (const Forecast& forecast : running.runner->forecast(std::span(&series, 1), *options)) {
        const std::vector<std::uint32_t> some = bits_of(forecast);
        bits.insert(bits.end(), some.begin(), some.end());
      }
    }
    if (run == 0) {
      first = std::move(bits);
      measured.compared_values = first.size();
      running.runner->finish_warm_up();  // only the same shapes follow: no new plan is needed
    } else if (bits != first) {
      ++measured.differing_runs;
    }
  }
}

}  // namespace

std::vector<ProductionCase> production_cases(const ModelInfo& model, std::uint64_t seed) {
  const int patch = model.facts.patch;
  const bool large = is_large(model);
  const auto series = [seed](const char* id, int variates, int length) {
    return make_series(id, variates, length, seed);
  };
  // The first two differ only in their data: equal answers do not come from a network. The first
  // one is also timed.
  std::vector<ProductionCase> cases;
  cases.push_back(
      {ProductionSubject::forward_pass, "8 patches", series("a", 1, 8 * patch - 1), patch});
  cases.push_back(
      {ProductionSubject::forward_pass, "8 other patches", series("b", 1, 8 * patch - 1), patch});
  cases.push_back({ProductionSubject::forward_pass, "3 variates",
                   series("c", 3, (large ? 2 : 5) * patch), patch});
  for (const char* id : {"d", "e", "f", "g"}) {
    cases.push_back({ProductionSubject::autoregressive,
                     fmt::format("{} decoded patches", kAutoregressiveSteps),
                     series(id, 1, 4 * patch), (kAutoregressiveSteps + 1) * patch});
  }
  constexpr std::pair<ProductionSubject, int> kContexts[] = {{ProductionSubject::context_16, 16},
                                                             {ProductionSubject::context_32, 32},
                                                             {ProductionSubject::context_48, 48},
                                                             {ProductionSubject::context_64, 64}};
  for (const auto& [subject, patches] : kContexts) {
    cases.push_back({subject, fmt::format("{} patches", patches),
                     make_series(fmt::format("context {}", patches), 1, patches * patch, seed),
                     patch});
  }
  add_shape_cases(patch, large ? 2 : 7, seed, cases);
  return cases;
}

void add_measure_jobs(const MeasurePlan& plan, const std::shared_ptr<ProductionRun>& measured,
                      Jobs& jobs) {
  const auto running =
      std::make_shared<MeasuredEngine>(MeasuredEngine{plan, nullptr, std::nullopt});
  // A step of the measurement; skipped after a failure.
  const auto add = [&](auto step) {
    jobs.push_back([running, measured, step] {
      if (!measured->complaint.empty()) return;
      measured->complaint = complaint_of([&] { step(*running, *measured); });
    });
  };
  jobs.push_back([running, measured] {
    running->memory.emplace();
    const MeasurePlan& wanted = running->plan;
    const auto load = [&] {
      running->runner = wanted.options->load(wanted.options->model, wanted.engine);
    };
    if (wanted.required) {
      load();
    } else {
      measured->complaint = complaint_of(load);
    }
  });
  for (std::size_t i = 0; i < plan.cases->size(); ++i) {
    add([i](MeasuredEngine& now, ProductionRun& result) {
      const ProductionCase& item = (*now.plan.cases)[i];
      TracedCase& answer = result.answers.emplace_back();
      answer.complaint = complaint_of(
          [&] { answer.trace = now.runner->trace(item.series, {.horizon = item.horizon}); });
    });
  }
  if (plan.extent == MeasureExtent::everything) {
    add(run_shapes);
    add(run_speed);
    add([](MeasuredEngine& now, ProductionRun& result) {
      run_determinism(now, now.runner->model().facts, result);
    });
    add([](MeasuredEngine& now, ProductionRun& result) {
      const ModelInfo& model = now.runner->model();
      result.weights_megabytes = static_cast<double>(model.num_parameters) *
                                 bytes_per_weight(now.plan.engine.dtype) / kMegabyte;
      result.peak_megabytes = now.memory->megabytes(model);
      result.kv_cache_name = now.runner->kv_cache_name();
      result.replans = now.runner->replans();
    });
  }
  jobs.push_back([running] { running->runner.reset(); });
}

}  // namespace toto::validate
