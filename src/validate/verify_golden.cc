// Goldens: each output against what PyTorch answered in float64, in every mode asked for.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"
#include "validate/golden.h"
#include "validate/verify_parts.h"

namespace toto::validate {
namespace {

// Double runs of one network agree to rounding in double, amplified by the feedback of forecasts.
constexpr double kMeanErrorF64 = 1e-10;  // of mean |f64|
constexpr double kMaxErrorF64 = 1e-8;    // of max |f64|

// What an engine answered, in the order of Golden::outputs; empty where this engine has no answer.
using Answers = std::vector<std::vector<double>>;

bool is_uncached(const GoldenOutput& output) { return output.name.ends_with(kUncachedSuffix); }

bool is_answered_by(const GoldenOutput& output, Mode mode) {
  return !is_uncached(output) || mode == Mode::reference;
}

// One golden while its jobs run; the answers of `reference` serve two of them.
struct Session {
  Golden golden;
  std::size_t index = 0;  // in Report::goldens
  Answers reference = {};
};

// The golden's own model must fit it. Another one that does not is another model: it fails, like
// one that answers other numbers.
void check_fits(const VerifyOptions& options, const Golden& golden, const ModelInfo& model) {
  if (options.golden_model.empty()) {
    golden.check_fits(model);
  } else if (!golden.fits(model)) {
    fail(ErrorCode::invalid_argument,
         "{} has {}, the golden is of {}: it was made of another model", options.golden_model,
         golden.described_sizes(&model), golden.described_sizes(nullptr));
  }
}

void ask(const VerifyOptions& options, const Session& session, const EngineOptions& engine,
         Answers& answers, Report& report) {
  const Golden& golden = session.golden;
  GoldenModel& checked = report.goldens[session.index];
  const std::unique_ptr<Runner> runner = options.load(checked.folder, engine);
  checked.weights_sha256 = runner->model().weights_sha256;
  check_fits(options, golden, runner->model());
  std::vector<Trace> traces;
  traces.reserve(golden.batch.size());
  for (const Series& series : golden.batch) {
    traces.push_back(runner->trace(series, golden.horizon));
  }
  for (std::size_t i = 0; i < golden.outputs.size(); ++i) {
    if (is_uncached(golden.outputs[i]) == engine.use_kv_cache) continue;
    answers[i] = answer_of(golden, golden.outputs[i], traces);
  }
}

Answers answers_of(const VerifyOptions& options, const Session& session, EngineOptions engine,
                   Report& report) {
  Answers answers(session.golden.outputs.size());
  ask(options, session, engine, answers, report);
  if (engine.mode == Mode::reference && std::ranges::any_of(session.golden.outputs, is_uncached)) {
    engine.use_kv_cache = false;
    ask(options, session, engine, answers, report);
  }
  return answers;
}

// Calls visit(label, offset, size) for what is judged: the output as a whole, and forecasts also
// for each series alone, where a large series could hide what is wrong with a small one.
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

struct Bounds {
  double mean = 0;
  double max = std::numeric_limits<double>::max();  // float32 is bounded in the mean only
};

Bounds bounds_for(DType dtype, std::span<const double> f32, std::span<const double> f64) {
  if (dtype == DType::f64) return {kMeanErrorF64 * mean_size(f64), kMaxErrorF64 * largest(f64)};
  return {.mean = tolerance(f32, f64) + storage_share(dtype) * mean_size(f64)};
}

Check judge(const Golden& golden, const GoldenOutput& output, std::span<const double> ours,
            Mode mode, DType dtype) {
  Check check{.name = fmt::format("golden/{}/{}/{}", golden.name, name_of(mode), output.name)};
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
    const Bounds bounds = bounds_for(dtype, f32, f64);
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

// A golden sets its own bound, so whoever changes its numbers a little widens it: float64 values
// scaled by 1.0009 pass the 1e-3 rule and let an error of 1e-3 through. Two things a changed golden
// cannot have: float64 values that our own float64 run confirms to a fraction of the float32 error,
// and a float32 error of the size that float32 rounding makes.
constexpr double kShareOfOwnError = 0.5;  // our float64 must be nearer to f64 than f32 is,
constexpr double kConfirmed = 1e-6;       // unless both are as near as this share of mean |f64|
constexpr double kTimesOurError = 100;    // PyTorch's float32 error: at most about 10 times that of
constexpr double kRounding = 1e-5;        // `reference` mode, whose sums are double, was seen
constexpr double kDenormalStep = 0x1p-149;  // float32 rounds to multiples of this near 0

Check judge_plausibility(const Golden& golden, const Answers& ours32, const Answers& ours64) {
  double worst = 0;
  std::string worst_part = "nothing was compared";
  const auto consider = [&](double share, const std::string& part) {
    if (std::isnan(worst) || share <= worst) return;  // NaN is worse than anything
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

void check_mode(const VerifyOptions& options, Session& session, Mode mode, Report& report) {
  const Golden& golden = session.golden;
  const EngineOptions engine = engine_options(options, mode);
  Answers answers;
  std::string complaint;
  try {
    answers = answers_of(options, session, engine, report);
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
  if (mode == Mode::reference) session.reference = std::move(answers);
}

void check_plausibility(const VerifyOptions& options, Session& session, Report& report) {
  EngineOptions engine = engine_options(options, Mode::reference);
  engine.dtype = DType::f32;
  Answers ours64;
  try {
    if (session.reference.empty()) {
      session.reference = answers_of(options, session, engine, report);
    }
    engine.dtype = DType::f64;
    ours64 = answers_of(options, session, engine, report);
  } catch (const Error& error) {  // as in check_mode
    if (error.code() != ErrorCode::invalid_argument) throw;
    report.checks.push_back(
        failed_check(fmt::format("plausible/{}", session.golden.name), error.what()));
    return;
  }
  report.checks.push_back(judge_plausibility(session.golden, session.reference, ours64));
}

}  // namespace

void add_golden_jobs(const VerifyOptions& options, Report& report, Jobs& jobs) {
  for (const GoldenFolder& folder : find_goldens(options.goldens)) {
    // Read before anything runs: an hour of checks is no use if the last golden is not to be had.
    const bool own = options.golden_model.empty();
    const auto session = std::make_shared<Session>(Session{
        .golden = read_golden(folder, own ? GoldenUse::with_its_model : GoldenUse::with_another),
        .index = report.goldens.size()});
    report.goldens.push_back({.golden = session->golden.name,
                              .folder = own ? session->golden.folder : options.golden_model});
    for (const Mode mode : options.modes) {
      jobs.push_back(
          [&options, &report, session, mode] { check_mode(options, *session, mode, report); });
    }
    if (options.engine.dtype == DType::f64) continue;  // no bound comes from the golden's float32
    jobs.push_back([&options, &report, session] { check_plausibility(options, *session, report); });
  }
}

}  // namespace toto::validate
