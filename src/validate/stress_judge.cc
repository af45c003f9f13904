// The limits of a stress run. Every broken one is a check that names figure and bound; from half of
// a limit on there is a warning.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/process_memory.h"
#include "validate/golden.h"
#include "validate/limits.h"
#include "validate/stress_parts.h"
#include "validate/verify_parts.h"

namespace toto::validate {
namespace {

// None may be lost. What is allowed for is how the figures come about: resident memory is counted
// in pages by each CPU for itself, and threads keep small blocks back when they end.
constexpr double kMaxResidentGrowth = 2;  // megabytes over the last half of a run
constexpr double kMaxHeapGrowth = 0.0625;

class Judge {
 public:
  Judge(const StressOptions& options, const StressRun& run, StressReport& report)
      : options_(options), run_(run), report_(report), reference_(run.modes.at(Mode::reference)) {}

  void judge() {
    for (const auto& [mode, record] : run_.modes) judge_mode(mode, record);
    judge_optimised();
  }

 private:
  void add(Check check) { report_.checks.push_back(std::move(check)); }

  // A check, and a warning where it holds but comes near: `warn_from` is what lies between.
  void add(Check check, double warn_from) {
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
    add_mishaps("repeatable", record.differing, "numbers differ between equal calls");
    add_mishaps("cancels", record.not_cancelled, "calls could not be cancelled");
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

  // Different windows, one answer: whatever gives it has not looked.
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
      if (std::isnan(worst) || change <= worst) return;  // NaN is worse than anything
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

  // The figure is a time, so that more is worse, as everywhere.
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

  // Every shape is answered, with what `reference` answers where it was asked.
  void judge_shapes(const ModeRecord& record) {
    double worst = 0;
    std::string where = fmt::format("{} shapes answered", run_.requests.size());
    for (std::size_t i = 0; i < run_.requests.size(); ++i) {
      const Answer& ours = record.answers[i];
      const Answer& theirs = reference_.answers[i];
      if (!ours.complaint.empty()) {
        add(failed_check(name("shapes"), fmt::format("{}: {}", run_.requests[i], ours.complaint)));
        return;
      }
      // Of a large model `reference` is not asked for what is heavy; others must answer still.
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

  void add_mishaps(std::string_view what, const Mishaps& mishaps, std::string_view meaning) {
    Check check = measured_check(
        name(what), static_cast<double>(mishaps.count), 0,
        mishaps.count == 0 ? fmt::format("{} calls", mishaps.tried)
                           : fmt::format("{} {}: {}", mishaps.count, meaning, mishaps.first));
    check.passed = check.passed && mishaps.tried > 0;
    add(std::move(check));
  }

  void judge_memory(const ModeRecord& record) {
    add(growth_check("memory", record, &StressRow::resident, kMaxResidentGrowth, "resident"));
    // Finer, but not every allocator counts.
    const bool counted = std::any_of(record.rows.begin(), record.rows.end(),
                                     [](const StressRow& row) { return row.heap.has_value(); });
    if (counted) {
      add(growth_check("heap", record, &StressRow::heap, kMaxHeapGrowth, "handed out by malloc"));
    }
  }

  // From the middle iteration on memory may go up and down, but has no further to go.
  Check growth_check(std::string_view what, const ModeRecord& record,
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

  // Optimised modes do not approximate one another: they give the same bits.
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
    Check check =
        measured_check("same-bits", static_cast<double>(different), 0,
                       fmt::format("{} of {} numbers differ between the optimised modes{}",
                                   different, values, where));
    check.passed = check.passed && values > 0;
    add(std::move(check));
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
  Judge(options, run, report).judge();
}

}  // namespace toto::validate
