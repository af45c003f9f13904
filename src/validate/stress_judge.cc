// Judges a stress run by its limits. Each limit is a check with figure and bound; from half of a
// limit on there is a warning.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/process_memory.h"
#include "validate/golden.h"
#include "validate/mode_checks.h"
#include "validate/stress_parts.h"

namespace toto::validate {
namespace {

// No memory may leak. The tolerance covers how memory is measured: each CPU counts resident pages
// separately, and ending threads retain small blocks.
constexpr double kMaxResidentGrowth = 2;  // megabytes over the last half of a run
constexpr double kMaxHeapGrowth = 0.0625;

class StressJudge {
 public:
  StressJudge(const StressOptions& options, const StressRun& run, StressReport& report)
      : options_(options), run_(run), report_(report), reference_(run.modes.at(Mode::reference)) {}

  void judge() {
    for (const auto& [mode, record] : run_.modes) judge_mode(mode, record);
    judge_optimised();
  }

 private:
  void add(CheckResult check) { report_.checks.push_back(std::move(check)); }

  // Adds a check, and a warning if it passes with a figure above `warn_from`.
  void add(CheckResult check, double warn_from) {
    if (check.passed && check.figure.value_or(warn_from) > warn_from) {
      report_.warnings.push_back(fmt::format("{}: {}", check.name, check.detail));
    }
    add(std::move(check));
  }

  void judge_mode(Mode mode, const ModeRecord& record) {
    mode_ = mode;
    report_.latency[mode] = latency(record);
    report_.mixed[mode] = latency_of(record.mixed);
    report_.concurrent[mode] = latency_of(record.concurrent);
    if (auto remark = tail_remark(name("tail"), report_.latency[mode])) {
      report_.warnings.push_back(std::move(*remark));
    }
    if (!record.complaint.empty()) {
      add(failed_check(name("runs"), record.complaint));
      return;
    }
    judge_rows(record);
    add(judge_probe(name("network"), record.probe, reference_.probe, dtype()));
    judge_answers(record);
    if (mode != Mode::reference) {
      judge_mae(record);
      judge_speed(record);
    }
    judge_replans(record);
    judge_shapes(record);
    add_failures("repeatable", record.differing, "numbers differ between equal calls");
    add_failures("cancels", record.not_cancelled, "calls could not be cancelled");
    judge_memory(record);
  }

  std::string name(std::string_view what) const {
    return fmt::format("{}/{}", what, name_of(mode_));
  }
  DType dtype() const { return mode_ == Mode::reference ? DType::f32 : options_.engine.dtype; }

  void judge_rows(const ModeRecord& record) {
    const auto incomplete = std::count_if(record.rows.begin(), record.rows.end(),
                                          [](const StressRow& row) { return !row.complete(); });
    add(measured_check(
        name("rows"), static_cast<double>(incomplete), 0,
        fmt::format("{} of {} iterations lack a figure", incomplete, record.rows.size())));
  }

  // The same forecast for different windows does not come from the data.
  void judge_answers(const ModeRecord& record) {
    std::size_t constant = 0;
    std::string which;
    for (std::size_t s = 0; s < record.by_symbol.size(); ++s) {
      if (run_.flat[s] || record.by_symbol[s].prediction_std() > 0) continue;
      if (constant++ == 0) which = ", " + run_.symbols[s] + " among them";
    }
    add(measured_check(name("answers"), static_cast<double>(constant), 0,
                       fmt::format("{} of {} symbols get the same forecast for every window{}",
                                   constant, record.by_symbol.size(), which)));
  }

  void judge_mae(const ModeRecord& record) {
    double worst = -1;
    std::string where;
    const auto consider = [&](const Accuracy& ours, const Accuracy& theirs,
                              const std::string& what) {
      const double change = mae_change(ours, theirs);
      if (std::isnan(worst) || change <= worst) return;  // NaN counts as the worst
      worst = change;
      where = fmt::format(
          "MAE of {} is {:.6g}, {:.3g} % from the {:.6g} of reference; at most {} % expected", what,
          ours.mae(), 100 * change, theirs.mae(), 100 * kMaxMaeChange);
    };
    for (std::size_t s = 0; s < record.by_symbol.size(); ++s) {
      consider(record.by_symbol[s], reference_.by_symbol[s], run_.symbols[s]);
    }
    for (std::size_t i = 0; i < record.rows.size(); ++i) {
      consider(record.rows[i].accuracy, reference_.rows[i].accuracy,
               fmt::format("iteration {}", i));
    }
    add(measured_check(name("mae"), worst, kMaxMaeChange, where), kWarnShare * kMaxMaeChange);
  }

  static Latency latency(const ModeRecord& record) {
    std::vector<double> all;
    for (const StressRow& row : record.rows) {
      all.insert(all.end(), row.milliseconds.begin(), row.milliseconds.end());
    }
    return latency_of(all);
  }

  // The figure is a ratio of times: larger is worse, as in all checks.
  void judge_speed(const ModeRecord& record) {
    const double ours = latency(record).p50, theirs = latency(reference_).p50;
    constexpr double kWarnSpeed = 1 - kWarnShare * (1 - kMinSpeed);
    add(measured_check(name("speed"), ours / theirs, 1 / kMinSpeed,
                       fmt::format("{:.3g} ms, {:.3g} times as fast as the {:.3g} ms of reference; "
                                   "at least {} times expected",
                                   ours, theirs / ours, theirs, kMinSpeed)),
        1 / kWarnSpeed);
  }

  void judge_replans(const ModeRecord& record) {
    std::int64_t replans = 0;
    for (const StressRow& row : record.rows) replans += row.replans;
    add(measured_check(
            name("replans"), static_cast<double>(replans), kMaxReplans,
            fmt::format("{} replans after warm-up, at most {} expected", replans, kMaxReplans)),
        kWarnShare * kMaxReplans);
  }

  // Every shape is answered, and agrees with `reference` where `reference` was asked.
  void judge_shapes(const ModeRecord& record) {
    double worst = 0;
    std::string where = fmt::format("{} shapes answered", run_.requests.size());
    for (std::size_t i = 0; i < run_.requests.size(); ++i) {
      const StressAnswer& ours = record.answers[i];
      const StressAnswer& theirs = reference_.answers[i];
      if (!ours.complaint.empty()) {
        add(failed_check(name("shapes"), fmt::format("{}: {}", run_.requests[i], ours.complaint)));
        return;
      }
      // `reference` skips heavy requests of a large model; the other modes must answer them.
      if (ours.values.empty() && mode_ == Mode::reference) continue;
      const std::vector<double>& expected = theirs.values.empty() ? ours.values : theirs.values;
      const double error = deviation(ours.values, expected).mean;  // NaN where a value is
      const double share = error == 0 ? 0 : error / mean_size(expected);
      if (share <= worst) continue;
      worst = share;
      where = fmt::format("{}: {:.2g} of a value's size from reference", run_.requests[i], share);
      if (std::isnan(share)) break;
    }
    add(measured_check(name("shapes"), worst, kRoundingNoise + storage_share(dtype()), where));
  }

  void add_failures(std::string_view what, const FailureCount& failures, std::string_view meaning) {
    add(equality_check(name(what), failures.count, failures.tried,
                       failures.count == 0
                           ? fmt::format("{} calls", failures.tried)
                           : fmt::format("{} {}: {}", failures.count, meaning, failures.first)));
  }

  void judge_memory(const ModeRecord& record) {
    add(growth_check("memory", record, &StressRow::resident, kMaxResidentGrowth, "resident"));
    // More precise, but not every allocator counts.
    const bool counted = std::any_of(record.rows.begin(), record.rows.end(),
                                     [](const StressRow& row) { return row.heap.has_value(); });
    if (counted) {
      add(growth_check("heap", record, &StressRow::heap, kMaxHeapGrowth, "handed out by malloc"));
    }
  }

  // From the middle iteration on memory may vary, but not grow.
  CheckResult growth_check(std::string_view what, const ModeRecord& record,
                           std::optional<std::uint64_t> StressRow::* member, double bound,
                           std::string_view meaning) const {
    const std::size_t middle = record.rows.size() / 2;
    double growth = 0, first = 0;
    for (std::size_t i = middle; i < record.rows.size(); ++i) {
      const std::optional<std::uint64_t>& bytes = record.rows[i].*member;
      if (!bytes) return failed_check(name(what), "the memory of this process could not be read");
      const double megabytes = static_cast<double>(*bytes) / kMegabyte;
      if (i == middle) first = megabytes;
      growth = std::max(growth, megabytes - first);
    }
    return measured_check(name(what), growth, bound,
                          fmt::format("{:.3f} MB more than the {:.1f} MB {} after iteration {}; at "
                                      "most {} MB expected",
                                      growth, first, meaning, middle, bound));
  }

  // Optimised modes must give the same bits.
  void judge_optimised() {
    const ModeRecord* first = nullptr;
    std::size_t different = 0, values = 0;
    std::string where;
    for (const auto& [mode, record] : run_.modes) {
      if (mode == Mode::reference || !record.complaint.empty()) continue;
      if (first == nullptr) first = &record;
      for (std::size_t i = 0; i < record.answers.size(); ++i) {
        const std::size_t some = num_different(first->answers[i].bits, record.answers[i].bits);
        if (different == 0 && some > 0) where = fmt::format(", {} first", name_of(mode));
        different += some;
        values += record.answers[i].bits.size();
      }
      for (std::size_t i = 0; i < record.rows.size(); ++i) {
        if (record.rows[i].digest == first->rows[i].digest) continue;
        if (different == 0) where = fmt::format(", {} in iteration {}", name_of(mode), i);
        ++different;
      }
    }
    add(equality_check("same-bits", different, values,
                       fmt::format("{} of {} numbers differ between the optimised modes{}",
                                   different, values, where)));
  }

  const StressOptions& options_;
  const StressRun& run_;
  StressReport& report_;
  const ModeRecord& reference_;
  Mode mode_ = Mode::reference;
};

}  // namespace

bool StressRow::complete() const {
  return complaint.empty() && !milliseconds.empty() && std::isfinite(accuracy.mae()) &&
         std::isfinite(accuracy.rmse()) && std::isfinite(accuracy.prediction_std()) &&
         peak_memory_mb.has_value() && resident.has_value();
}

void judge_stress(const StressOptions& options, const StressRun& run, StressReport& report) {
  StressJudge(options, run, report).judge();
}

}  // namespace toto::validate
