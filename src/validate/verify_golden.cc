// Goldens: compares each output with PyTorch's float64 values, in every requested mode.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"
#include "validate/golden.h"
#include "validate/verify_parts.h"

namespace toto::validate {
namespace {

// Two double runs of one network agree up to double rounding, amplified by feeding forecasts back.
constexpr double kMeanErrorF64 = 1e-10;  // of mean |f64|
constexpr double kMaxErrorF64 = 1e-8;    // of max |f64|

// An engine's answers, in the order of Golden::outputs; empty for outputs this engine does not
// have.
using GoldenAnswers = std::vector<std::vector<double>>;

bool is_uncached(const GoldenOutput& output) { return output.name.ends_with(kUncachedSuffix); }

// With a block, everything but the quantiles of one pass comes from forecasting block by block.
bool is_one_pass(const Golden& golden, const GoldenOutput& output) {
  return golden.reading.block == 0 || output.name == "quantiles";
}

bool is_answered_by(const GoldenOutput& output, Mode mode) {
  return !is_uncached(output) || mode == Mode::reference;
}

// One golden while its jobs run; two of them use the answers of `reference`.
struct GoldenRun {
  Golden golden;
  std::size_t index = 0;  // in VerifyReport::goldens
  GoldenAnswers reference = {};
};

// The model next to a golden must fit it. A model given by the user that does not fit fails its
// checks.
void check_fits(const VerifyOptions& options, const Golden& golden, const ModelInfo& model) {
  if (options.golden_model.empty()) {
    golden.check_fits(model);
  } else if (!golden.fits(model)) {
    fail(ErrorCode::invalid_argument,
         "{} has {}, the golden is of {}: it was made from another model", options.golden_model,
         golden.described_sizes(&model), golden.described_sizes(nullptr));
  }
}

void trace_golden(const VerifyOptions& options, const GoldenRun& run, const EngineOptions& engine,
                  GoldenAnswers& answers, VerifyReport& report) {
  const Golden& golden = run.golden;
  GoldenModel& checked = report.goldens[run.index];
  const std::unique_ptr<Runner> runner = options.load(checked.folder, engine);
  checked.weights_sha256 = runner->model().weights_sha256;
  check_fits(options, golden, runner->model());
  ForecastOptions reading = golden.reading;
  reading.horizon = golden.horizon;
  for (const bool one_pass : {false, true}) {
    if (one_pass) reading.block = 0;
    std::vector<Trace> traces;
    for (std::size_t i = 0; i < golden.outputs.size(); ++i) {
      const GoldenOutput& output = golden.outputs[i];
      if (is_uncached(output) == engine.use_kv_cache) continue;
      if (is_one_pass(golden, output) != one_pass) continue;
      for (const Series& series : golden.batch) {
        if (traces.size() == golden.batch.size()) break;
        traces.push_back(runner->trace(series, reading));
      }
      answers[i] = answer_of(golden, output, traces);
    }
  }
}

GoldenAnswers answers_of(const VerifyOptions& options, const GoldenRun& run, EngineOptions engine,
                         VerifyReport& report) {
  GoldenAnswers answers(run.golden.outputs.size());
  trace_golden(options, run, engine, answers, report);
  if (engine.mode == Mode::reference && std::ranges::any_of(run.golden.outputs, is_uncached)) {
    engine.use_kv_cache = false;
    trace_golden(options, run, engine, answers, report);
  }
  return answers;
}

// Calls visit(label, offset, size) for each judged part: the output as a whole, and forecasts also
// per series, since a large series could hide the error of a small one.
template <typename Visit>
void for_each_part(const Golden& golden, const GoldenOutput& output, const Visit& visit) {
  visit(std::string("all"), std::size_t{0}, output.f64.size());
  if (output.series_size == 0 || output.series_size == output.f64.size()) return;
  for (std::size_t i = 0; i * output.series_size < output.f64.size(); ++i) {
    visit(golden.series_name(i), i * output.series_size, output.series_size);
  }
}

double largest(std::span<const double> values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

struct ErrorBounds {
  double mean = 0;
  double max = std::numeric_limits<double>::max();  // float32 is bounded in the mean only
};

ErrorBounds bounds_for(DType dtype, std::span<const double> f32, std::span<const double> f64) {
  if (dtype == DType::f64) return {kMeanErrorF64 * mean_size(f64), kMaxErrorF64 * largest(f64)};
  return {.mean = tolerance(f32, f64) + storage_share(dtype) * mean_size(f64)};
}

CheckResult judge(const Golden& golden, const GoldenOutput& output, std::span<const double> ours,
                  Mode mode, DType dtype) {
  CheckResult check{.name =
                        fmt::format("golden/{}/{}/{}", golden.name, name_of(mode), output.name)};
  if (ours.size() != output.f64.size()) {
    check.detail = fmt::format("the engine answered {} values, the golden holds {}", ours.size(),
                               output.f64.size());
    return check;
  }
  check.passed = true;
  for_each_part(golden, output, [&](const std::string& label, std::size_t at, std::size_t size) {
    const std::span<const double> f32 = std::span(output.f32).subspan(at, size);
    const std::span<const double> f64 = std::span(output.f64).subspan(at, size);
    const Deviation error = deviation(ours.subspan(at, size), f64);
    const ErrorBounds bounds = bounds_for(dtype, f32, f64);
    if (!check.figure) {  // the whole comes first
      check.figure = error.mean;
      check.bound = bounds.mean;
      check.max_error = error.max;
      check.own_error = deviation(f32, f64).mean;
    }
    if (holds(error.mean, bounds.mean) && holds(error.max, bounds.max)) return;
    check.passed = false;
    if (!check.detail.empty()) return;
    const bool in_mean = !holds(error.mean, bounds.mean);
    check.detail = fmt::format("{}: {} error {:.3g}, at most {:.3g} expected", label,
                               in_mean ? "mean" : "largest", in_mean ? error.mean : error.max,
                               in_mean ? bounds.mean : bounds.max);
  });
  return check;
}

// A golden sets its own bound, so slightly changed numbers would widen it: float64 values scaled by
// 1.0009 pass the 1e-3 rule and hide an error of 1e-3. A changed golden fails one of two tests: its
// float64 values agree with our own float64 run to a fraction of the float32 error, and its float32
// error has the size of float32 rounding.
constexpr double kShareOfOwnError = 0.5;  // our float64 must be closer to f64 than f32 is,
constexpr double kConfirmed = 1e-6;       // unless both are within this share of mean |f64|
// PyTorch's float32 error is at most about 10 times that of `reference`, which sums in double.
constexpr double kTimesOurError = 100;
constexpr double kRounding = 1e-5;
constexpr double kDenormalStep = 0x1p-149;  // float32 rounds to multiples of this near 0

CheckResult judge_plausibility(const Golden& golden, const GoldenAnswers& ours32,
                               const GoldenAnswers& ours64) {
  double worst = 0;
  std::string worst_part = "nothing was compared";
  const auto consider = [&](double share, const std::string& part) {
    if (std::isnan(worst) || share <= worst) return;  // NaN counts as the worst
    worst = share;
    worst_part = part;
  };
  for (std::size_t i = 0; i < golden.outputs.size(); ++i) {
    const GoldenOutput& output = golden.outputs[i];
    for_each_part(golden, output, [&](const std::string& label, std::size_t at, std::size_t size) {
      const auto part = [at, size](const std::vector<double>& values) {
        return values.size() < at + size ? std::span<const double>()
                                         : std::span(values).subspan(at, size);
      };
      const std::span<const double> f64 = part(output.f64);
      const double own = deviation(part(output.f32), f64).mean;
      const double confirmed = deviation(part(ours64[i]), f64).mean;
      const double rounding = deviation(part(ours32[i]), f64).mean;
      const double full = mean_size(f64);
      consider(
          confirmed / (kShareOfOwnError * own + kConfirmed * full + kDenormalStep),
          fmt::format("f64.{} ({}) is {:.3g} from our float64", output.name, label, confirmed));
      consider(own / (kTimesOurError * rounding + kRounding * full + kDenormalStep),
               fmt::format("f32.{} ({}) is {:.3g} from f64, ours is {:.3g}", output.name, label,
                           own, rounding));
    });
  }
  return measured_check(fmt::format("plausible/{}", golden.name), worst, 1, worst_part);
}

// -------------------------------------------------------------------------------------------- jobs

void check_mode(const VerifyOptions& options, GoldenRun& run, Mode mode, VerifyReport& report) {
  const Golden& golden = run.golden;
  const EngineOptions engine = engine_options(options, mode);
  GoldenAnswers answers;
  std::string complaint;
  try {
    answers = answers_of(options, run, engine, report);
  } catch (const Error& error) {
    // A mode or dtype this version does not have fails here; a broken model ends the run.
    if (error.code() != ErrorCode::invalid_argument) throw;
    complaint = error.what();
  }
  for (std::size_t i = 0; i < golden.outputs.size(); ++i) {
    const GoldenOutput& output = golden.outputs[i];
    if (!is_answered_by(output, mode)) continue;
    if (complaint.empty()) {
      report.checks.push_back(judge(golden, output, answers[i], mode, engine.dtype));
    } else {
      report.checks.push_back(failed_check(
          fmt::format("golden/{}/{}/{}", golden.name, name_of(mode), output.name), complaint));
    }
  }
  if (mode == Mode::reference) run.reference = std::move(answers);
}

void check_plausibility(const VerifyOptions& options, GoldenRun& run, VerifyReport& report) {
  EngineOptions engine = engine_options(options, Mode::reference);
  engine.dtype = DType::f32;
  GoldenAnswers ours64;
  try {
    if (run.reference.empty()) {
      run.reference = answers_of(options, run, engine, report);
    }
    engine.dtype = DType::f64;
    ours64 = answers_of(options, run, engine, report);
  } catch (const Error& error) {  // see check_mode
    if (error.code() != ErrorCode::invalid_argument) throw;
    report.checks.push_back(
        failed_check(fmt::format("plausible/{}", run.golden.name), error.what()));
    return;
  }
  report.checks.push_back(judge_plausibility(run.golden, run.reference, ours64));
}

}  // namespace

void add_golden_jobs(const VerifyOptions& options, VerifyReport& report, Jobs& jobs) {
  for (const GoldenFolder& folder : find_goldens(options.goldens)) {
    // Read before anything runs: an unreadable golden should not end a run after an hour.
    const bool own = options.golden_model.empty();
    const auto run = std::make_shared<GoldenRun>(GoldenRun{
        .golden = read_golden(folder, own ? GoldenUse::with_its_model : GoldenUse::with_another),
        .index = report.goldens.size()});
    report.goldens.push_back(
        {.golden = run->golden.name, .folder = own ? run->golden.folder : options.golden_model});
    for (const Mode mode : options.modes) {
      jobs.push_back([&options, &report, run, mode] { check_mode(options, *run, mode, report); });
    }
    if (options.engine.dtype == DType::f64) continue;  // no bound comes from the golden's float32
    jobs.push_back([&options, &report, run] { check_plausibility(options, *run, report); });
  }
}

}  // namespace toto::validate
