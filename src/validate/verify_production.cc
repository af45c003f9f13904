// The eleven production subjects: every requested mode is compared with `reference` mode in
// float64.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "validate/golden.h"
#include "validate/network_probe.h"
#include "validate/verify_measure.h"

namespace toto::validate {
namespace {

// `reference` sums in double, so its float32 error is only that of rounding the results. An engine
// that sums in float32, as PyTorch does, has 3 to 10 times that error in the goldens; a wrong one
// has thousands of times.
constexpr double kTimesReferenceError = 16;
constexpr double kShareOfSize = 1e-7;  // as in the golden tolerance
// Memory may exceed the weights by a quarter plus 64 MB for buffers, threads and code.
constexpr double kWeightsFactor = 1.25;
constexpr double kBufferMegabytes = 64;
constexpr int kUncachedPatches = 4;  // the two paths differ from the second one on

// The result of one mode on one subject.
struct ModeVerdict {
  bool passed = false;
  std::optional<double> figure = {}, bound = {};
  std::string detail = {};
};

ModeVerdict measured(double figure, double bound, std::string detail) {
  return {holds(figure, bound), figure, bound, std::move(detail)};
}
ModeVerdict failed(std::string detail) { return {.passed = false, .detail = std::move(detail)}; }

ModeVerdict measured_output(const std::string& what, double error, double bound) {
  return measured(error, bound, fmt::format("{} is {:.2g} off, of {:.2g}", what, error, bound));
}

// figure / bound; infinite for a failure without figures and for NaN.
double share(const ModeVerdict& verdict) {
  if (!verdict.figure || !verdict.bound) return verdict.passed ? 0 : HUGE_VAL;
  if (!verdict.passed && holds(*verdict.figure, *verdict.bound)) return HUGE_VAL;
  if (*verdict.figure == 0) return 0;
  const double part = *verdict.figure / *verdict.bound;
  return std::isnan(part) ? HUGE_VAL : part;
}

const ModeVerdict& worst_of(const std::vector<ModeVerdict>& verdicts) {
  return *std::max_element(
      verdicts.begin(), verdicts.end(),
      [](const ModeVerdict& a, const ModeVerdict& b) { return share(a) < share(b); });
}

// One output of several cases, concatenated.
std::vector<double> pooled(const ProductionRun& who, std::span<const std::size_t> indices,
                           std::string_view name) {
  std::vector<double> values;
  for (const std::size_t index : indices) {
    const std::span<const double> some = output_of(who.answers[index].trace, name);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

class Production {
 public:
  Production(const VerifyOptions& options, const ModelInfo& model)
      : options_(options),
        patch_(model.facts.patch),
        baseline_dtype_(options.engine.dtype == DType::f64 ? DType::f64 : DType::f32),
        cases_(std::make_shared<const std::vector<ProductionCase>>(
            production_cases(model, options.seed))) {}

  // The two `reference` engines first, then the other modes.
  void plan(Jobs& jobs) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      EngineOptions engine = engine_options(options_, Mode::reference);
      engine.dtype = dtype;
      const MeasureExtent extent =
          dtype == baseline_dtype_ ? MeasureExtent::everything : MeasureExtent::traces;
      auto& result = dtype == DType::f64 ? reference64_ : reference32_;
      add_measure_jobs({&options_, engine, cases_, extent, true}, result, jobs);
    }
    jobs.push_back([this] { run_uncached(); });
    for (const Mode mode : options_.modes) {
      if (mode == Mode::reference && options_.engine.dtype == baseline_dtype_) {
        results_[mode] = baseline();
        continue;
      }
      results_[mode] = std::make_shared<ProductionRun>();
      add_measure_jobs({&options_, engine_options(options_, mode), cases_}, results_[mode], jobs);
    }
  }

  void judge(VerifyReport& report) const {
    const auto add = [&](const char* name, ModeVerdict (Production::*subject)(Mode) const) {
      report.checks.push_back(over_modes(name, [&](Mode mode) { return (this->*subject)(mode); }));
    };
    const auto add_accuracy = [&](const char* name, ProductionSubject subject) {
      report.checks.push_back(
          over_modes(name, [&](Mode mode) { return judge_accuracy(mode, subject); }));
    };
    add("one-forward-pass", &Production::judge_forward_pass);
    add_accuracy("eight-autoregressive-steps", ProductionSubject::autoregressive);
    add_accuracy("context-16-patches", ProductionSubject::context_16);
    add_accuracy("context-32-patches", ProductionSubject::context_32);
    add_accuracy("context-48-patches", ProductionSubject::context_48);
    add_accuracy("context-64-patches", ProductionSubject::context_64);
    add("speed", &Production::judge_speed);
    add("memory-overhead", &Production::judge_memory);
    if (storage_share(options_.engine.dtype) > 0) {
      report.skipped.push_back(
          {"production/kv-cache",
           fmt::format("with {} weights the cached path cannot be distinguished "
                       "from the uncached one; use float32",
                       name_of(options_.engine.dtype))});
    } else {
      add("kv-cache", &Production::judge_kv_cache);
    }
    add("varying-shapes", &Production::judge_shapes);
    add("determinism", &Production::judge_determinism);
  }

 private:
  const std::shared_ptr<ProductionRun>& baseline() const {
    return baseline_dtype_ == DType::f64 ? reference64_ : reference32_;
  }

  // The path without a cache, from which a cached engine must differ.
  void run_uncached() {
    EngineOptions engine = engine_options(options_, Mode::reference);
    engine.dtype = DType::f64;
    engine.use_kv_cache = false;
    const ProductionCase& item = (*cases_)[cases_of(ProductionSubject::autoregressive)[0]];
    const Trace trace = options_.load(options_.model, engine)
                            ->trace(item.series, {.horizon = kUncachedPatches * patch_});
    const std::span<const double> path = path_of(trace);
    uncached_.assign(path.begin(), path.end());
  }

  // One check from a subject's verdict on each mode: its figure is that of the mode nearest to, or
  // furthest beyond, its bound.
  template <typename Judge>
  CheckResult over_modes(const char* name, const Judge& judge_mode) const {
    std::vector<ModeVerdict> verdicts;
    std::string detail;
    for (const Mode mode : options_.modes) {
      const std::string& complaint = results_.at(mode)->complaint;
      verdicts.push_back(complaint.empty() ? judge_mode(mode) : failed(complaint));
      detail += detail.empty() ? "" : "; ";
      detail += fmt::format("{}: {}", name_of(mode), verdicts.back().detail);
    }
    const ModeVerdict& worst = worst_of(verdicts);
    return {.name = fmt::format("production/{}", name),
            .passed = std::all_of(verdicts.begin(), verdicts.end(),
                                  [](const ModeVerdict& verdict) { return verdict.passed; }),
            .figure = worst.figure,
            .bound = worst.bound,
            .detail = std::move(detail)};
  }

  std::vector<std::size_t> cases_of(ProductionSubject subject) const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < cases_->size(); ++i) {
      if ((*cases_)[i].subject == subject) indices.push_back(i);
    }
    return indices;
  }

  // The largest error from float64 allowed for an optimised mode.
  double allowed(double own_error, double size) const {
    return kTimesReferenceError * own_error +
           (kShareOfSize + storage_share(options_.engine.dtype)) * size;
  }

  // Compares one output of one or several cases with float64.
  ModeVerdict judge_output(Mode mode, std::span<const std::size_t> indices,
                           std::string_view name) const {
    const std::vector<double> f64 = pooled(*reference64_, indices, name);
    const double own = deviation(pooled(*reference32_, indices, name), f64).mean;
    const double size = mean_size(f64);
    const std::string what = fmt::format("{} of {}", name, (*cases_)[indices[0]].what);
    if (mode == Mode::reference || !holds(own, kMaxOwnError * size)) {
      // Without a golden `reference` is judged only by its own rounding; if that is larger, the
      // other modes cannot be compared with it.
      return measured_output(what + " in float32", own, kMaxOwnError * size);
    }
    return measured_output(what, deviation(pooled(*results_.at(mode), indices, name), f64).mean,
                           allowed(own, size));
  }

  std::vector<ModeVerdict> judge_cases(Mode mode, std::span<const std::size_t> indices) const {
    for (const std::size_t index : indices) {
      for (const auto* who : {&reference64_, &reference32_, &results_.at(mode)}) {
        const TracedCase& answer = (*who)->answers[index];
        const std::string wrong =
            answer.complaint.empty() ? impossible(answer.trace) : answer.complaint;
        if (!wrong.empty()) return {failed(fmt::format("{}: {}", (*cases_)[index].what, wrong))};
      }
    }
    std::vector<ModeVerdict> verdicts;
    // Both engines must have the same arrays.
    const Trace& expected = reference64_->answers[indices[0]].trace;
    const Trace& ours = results_.at(mode)->answers[indices[0]].trace;
    if (output_names(expected) != output_names(ours))
      return {failed("other arrays than reference")};
    for (const std::string_view name : output_names(expected)) {
      verdicts.push_back(judge_output(mode, indices, name));
    }
    return verdicts;
  }

  ModeVerdict judge_accuracy(Mode mode, ProductionSubject subject) const {
    const std::vector<std::size_t> indices = cases_of(subject);
    std::vector<ModeVerdict> verdicts;
    if (subject == ProductionSubject::autoregressive) {
      // Feedback amplifies one direction of the error, so the errors of a single path vary by
      // chance; those of several paths together do not.
      verdicts = judge_cases(mode, indices);
    } else {
      for (const std::size_t& index : indices) {
        for (ModeVerdict& verdict : judge_cases(mode, std::span(&index, 1))) {
          verdicts.push_back(std::move(verdict));
        }
      }
    }
    return verdicts.empty() ? failed("nothing was compared") : worst_of(verdicts);
  }

  // Also checks that other data gives another answer: a constant instead of the network's output,
  // in every mode, would agree with itself.
  ModeVerdict judge_forward_pass(Mode mode) const {
    ModeVerdict accuracy = judge_accuracy(mode, ProductionSubject::forward_pass);
    if (!accuracy.passed) return accuracy;
    const std::vector<TracedCase>& answers = results_.at(mode)->answers;
    std::string same = same_answer(answers[0].trace, answers[1].trace);
    return same.empty() ? accuracy : failed(std::move(same));
  }

  ModeVerdict judge_speed(Mode mode) const {
    const double ours = results_.at(mode)->milliseconds;
    const double reference = baseline()->milliseconds;
    if (mode == Mode::reference && options_.engine.dtype == baseline_dtype_) {
      return {.passed = true, .detail = fmt::format("{:.3g} ms, the baseline", ours)};
    }
    if (!(reference > 0 && std::isfinite(reference))) {
      return failed("reference mode could not be timed, there is nothing to compare with");
    }
    return measured(
        ours / reference, 1,
        fmt::format("{:.3g} ms, {:.3g} times as fast as reference", ours, reference / ours));
  }

  ModeVerdict judge_memory(Mode mode) const {
    const ProductionRun& result = *results_.at(mode);
    if (!result.peak_megabytes) return failed("the memory of this process could not be read");
    return measured(*result.peak_megabytes,
                    kWeightsFactor * result.weights_megabytes + kBufferMegabytes,
                    fmt::format("{:.1f} MB at its peak, the parameters are {:.1f} MB",
                                *result.peak_megabytes, result.weights_megabytes));
  }

  // A name alone proves nothing: the forecast must also be that of the cached path.
  ModeVerdict judge_kv_cache(Mode mode) const {
    const ProductionRun& result = *results_.at(mode);
    if (result.kv_cache_name.empty() || result.kv_cache_name == "none") {
      return failed("no cache for keys and values is in use");
    }
    if (result.replans != 0) {
      return failed(fmt::format("{}: {} replans after warm-up, expected none", result.kv_cache_name,
                                result.replans));
    }
    const std::size_t index = cases_of(ProductionSubject::autoregressive)[0];
    const std::size_t size = uncached_.size();
    const auto start_of = [&](const std::shared_ptr<ProductionRun>& who) {
      const std::span<const double> path = path_of(who->answers[index].trace);
      return path.first(std::min(size, path.size()));
    };
    const double error = deviation(start_of(results_.at(mode)), start_of(reference64_)).mean;
    const double apart = deviation(uncached_, start_of(reference64_)).mean;
    const double own = deviation(start_of(reference32_), start_of(reference64_)).mean;
    const double rounding = allowed(own, mean_size(start_of(reference64_)));
    return measured(error, std::max(0.1 * apart, rounding),
                    fmt::format("{}; {:.3g} from the cached path, the uncached one is {:.3g} away",
                                result.kv_cache_name, error, apart));
  }

  ModeVerdict judge_shapes(Mode mode) const {
    const ProductionRun& result = *results_.at(mode);
    std::vector<std::string> bad = result.bad_shapes;
    for (const std::size_t& index : cases_of(ProductionSubject::shapes)) {
      const ModeVerdict worst = worst_of(judge_cases(mode, std::span(&index, 1)));
      if (!worst.passed) bad.push_back(worst.detail);
    }
    if (result.num_shapes == 0) return failed("no shape was tried");
    return measured(static_cast<double>(bad.size()), 0,
                    bad.empty() ? fmt::format("{} shapes", result.num_shapes) : bad.front());
  }

  ModeVerdict judge_determinism(Mode mode) const {
    const ProductionRun& result = *results_.at(mode);
    if (result.compared_values == 0) return failed("nothing was compared");
    return measured(
        result.differing_runs, 0,
        fmt::format("{} of {} runs differ from the first, {} numbers each", result.differing_runs,
                    kDeterminismRuns - 1, result.compared_values));
  }

  const VerifyOptions& options_;
  int patch_;
  DType baseline_dtype_;  // of the `reference` that speed is compared with
  std::shared_ptr<const std::vector<ProductionCase>> cases_;
  std::shared_ptr<ProductionRun> reference64_ = std::make_shared<ProductionRun>();
  std::shared_ptr<ProductionRun> reference32_ = std::make_shared<ProductionRun>();
  std::vector<double> uncached_;  // the path of the autoregressive case, float64
  std::map<Mode, std::shared_ptr<ProductionRun>> results_;
};

}  // namespace

void add_production_jobs(const VerifyOptions& options, const ModelInfo& model, VerifyReport& report,
                         Jobs& jobs) {
  const auto production = std::make_shared<Production>(options, model);
  production->plan(jobs);
  jobs.push_back([production, &report] { production->judge(report); });
}

}  // namespace toto::validate
