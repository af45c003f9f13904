#include "validate/mode_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "validate/golden.h"
#include "validate/mode_checks.h"
#include "validate/network_probe.h"

namespace toto::validate {
namespace {

constexpr int kWarmups = 2;  // forecasts of each symbol before times are taken

using Windows = std::vector<Window>;

// The results of one mode.
struct ModeRun {
  std::string complaint;                         // why the mode failed; empty: it did not
  std::vector<CompareRow> rows;                  // [symbol]
  std::vector<std::vector<Forecast>> forecasts;  // [symbol][run]
  NetworkProbe probe;
};

std::vector<double> compared_values(const std::vector<Forecast>& forecasts) {
  std::vector<double> values;
  for (const Forecast& forecast : forecasts) {
    for (const auto* some : {&forecast.mean, &forecast.median, &forecast.quantiles}) {
      values.insert(values.end(), some->begin(), some->end());
    }
  }
  return values;
}

std::size_t count_differing(const std::vector<Forecast>& a, const std::vector<Forecast>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    count += num_different(bits_of(a[i]), bits_of(b[i]));
  }
  return count;
}

class Comparison {
 public:
  explicit Comparison(const CompareOptions& options) : options_(options) {
    modes_ = {Mode::reference};
    for (const Mode mode : options.modes) {
      if (std::find(modes_.begin(), modes_.end(), mode) == modes_.end()) modes_.push_back(mode);
    }
    for (const Symbol& symbol : options.symbols) {
      windows_.push_back(
          held_out_windows(symbol, options.context, options.horizon, options.runs, &remarks_));
    }
    total_ = static_cast<int>(modes_.size() * windows_.size()) * (options.runs + kWarmups + 1);
  }

  CompareReport run() {
    CompareReport report;
    report.warnings = remarks_;
    for (const Mode mode : modes_) {
      ModeRun& run = runs_[mode];
      run.complaint = complaint_of_mode(mode, [&] { run_mode(mode, run, report); });
    }
    describe(report);
    for (const Mode mode : modes_) judge(mode, report);
    judge_optimised(report);
    collect(report);
    return report;
  }

 private:
  ForecastOptions request() const {
    return {.horizon = options_.horizon,
            .max_context = options_.context,
            .num_samples = options_.samples,
            .seed = options_.seed,
            .keep_samples = options_.samples > 0};
  }

  void step() {
    ++done_;
    if (options_.progress) options_.progress(done_, total_);
    if (options_.cancelled && options_.cancelled()) {
      fail(ErrorCode::cancelled, "the comparison was cancelled");
    }
  }

  Forecast forecast(Runner& runner, const Window& window, double& milliseconds) {
    TimedForecast timed = forecast_window(runner, window, request());
    milliseconds = timed.milliseconds;
    step();
    return std::move(timed.forecast);
  }

  void run_mode(Mode mode, ModeRun& run, CompareReport& report) {
    const PeakMemory memory;
    const std::unique_ptr<Runner> runner = options_.load(
        options_.model, noting_weights(engine_for(options_.engine, mode), report.weights));
    if (mode == Mode::reference) reference_model_ = runner->model();
    for (const std::string& warning : runner->model().warnings) note_once(warning, report.warnings);
    double ignored = 0;
    for (const Windows& windows : windows_) {
      CompareRow& row = run.rows.emplace_back();
      row.mode = mode;
      row.symbol = windows.front().context.id;
      for (int i = 0; i < kWarmups; ++i) {
        (void)forecast(*runner, windows.front(), i == 0 ? row.first_ms : ignored);
      }
    }
    run.probe = probe_network(*runner, windows_.front().front().context);
    runner->finish_warm_up();
    for (std::size_t s = 0; s < windows_.size(); ++s) {
      run_symbol(*runner, windows_[s], run.rows[s], run.forecasts.emplace_back());
      run.rows[s].peak_memory_mb = memory.megabytes(runner->model());
    }
  }

  void run_symbol(Runner& runner, const Windows& windows, CompareRow& row,
                  std::vector<Forecast>& forecasts) {
    const std::int64_t replans = runner.replans();
    row.milliseconds.reserve(windows.size());
    for (const Window& window : windows) {
      Forecast answer = forecast(runner, window, row.milliseconds.emplace_back());
      row.accuracy.add(answer.mean, window.actual);
      row.persistence.add(std::vector<float>(window.actual.size(), window.latest), window.actual);
      row.predicted.insert(row.predicted.end(), answer.mean.begin(), answer.mean.end());
      row.actual.insert(row.actual.end(), window.actual.begin(), window.actual.end());
      forecasts.push_back(std::move(answer));
    }
    double ignored = 0;
    const Forecast again = forecast(runner, windows.front(), ignored);
    row.differing_reruns = num_different(bits_of(forecasts.front()), bits_of(again));
    row.replans = runner.replans() - replans;
    row.latency = latency_of(row.milliseconds);
  }

  // --------------------------------------------------------------------------------- judgement

  bool has_run(Mode mode) const { return runs_.at(mode).complaint.empty(); }

  void describe(CompareReport& report) const {
    report.describe(reference_model_);
    report.describe(resolve_options(engine_for(options_.engine, Mode::standard)), options_.seed);
    report.context = options_.context;
    report.horizon = options_.horizon;
    report.samples = options_.samples;
    report.runs = options_.runs;
    report.modes = modes_;
  }

  // The figures that need `reference`, and the checks of one mode over all symbols.
  void judge(Mode mode, CompareReport& report) {
    ModeRun& run = runs_.at(mode);
    const auto name = [mode](const char* what) {
      return fmt::format("{}/{}", what, name_of(mode));
    };
    if (!run.complaint.empty()) {
      report.checks.push_back(failed_check(name("runs"), run.complaint));
      return;
    }
    const ModeRun& reference = runs_.at(Mode::reference);
    for (std::size_t s = 0; s < run.rows.size(); ++s) {
      CompareRow& row = run.rows[s];
      const std::vector<double> expected = compared_values(reference.forecasts[s]);
      const Deviation off = deviation(compared_values(run.forecasts[s]), expected);
      row.deviation_mean = off.mean;
      row.deviation_max = off.max;
      row.size = mean_size(expected);
      for (const Forecast& forecast : run.forecasts[s]) row.num_values += bits_of(forecast).size();
      row.speedup = reference.rows[s].latency.p50 / row.latency.p50;
    }
    const DType dtype = engine_for(options_.engine, mode).dtype;
    report.checks.push_back(judge_probe(name("network"), run.probe, reference.probe, dtype));
    report.checks.push_back(worst_row(run, name("answers"), 0, "symbols with one answer to all",
                                      [&](std::size_t s) { return double(is_constant(run, s)); }));
    report.checks.push_back(worst_row(
        run, name("deterministic"), 0, "numbers differ in a rerun",
        [&](std::size_t s) { return static_cast<double>(run.rows[s].differing_reruns); }));
    report.checks.push_back(
        worst_row(run, name("replans"), 0, "replans after warm-up",
                  [&](std::size_t s) { return static_cast<double>(run.rows[s].replans); }));
    if (mode == Mode::reference) return;
    report.checks.push_back(
        worst_row(run, name("deviation"), kRoundingNoise + storage_share(dtype),
                  "of their size is how far values are from reference", [&](std::size_t s) {
                    const CompareRow& row = run.rows[s];
                    return row.deviation_mean == 0 ? 0.0 : row.deviation_mean / row.size;
                  }));
    report.checks.push_back(
        worst_row(run, name("mae"), kMaxMaeChange, "change of MAE", [&](std::size_t s) {
          return mae_change(run.rows[s].accuracy, reference.rows[s].accuracy);
        }));
    // Medians: a single call that the machine delayed does not change them.
    report.checks.push_back(worst_row(
        run, name("speed"), 1 / kMinSpeed, "times the median time of reference",
        [&](std::size_t s) { return run.rows[s].latency.p50 / reference.rows[s].latency.p50; }));
  }

  // One check for all symbols, with the figure of the worst one.
  template <typename Figure>
  CheckResult worst_row(const ModeRun& run, std::string name, double bound, const char* what,
                        const Figure& figure) const {
    double worst = -1;
    std::size_t at = 0;
    for (std::size_t s = 0; s < run.rows.size(); ++s) {
      const double value = figure(s);
      if (value <= worst) continue;  // NaN counts as the worst
      worst = value;
      at = s;
      if (std::isnan(value)) break;
    }
    return measured_check(std::move(name), worst, bound,
                          fmt::format("{}: {:.3g} {}", run.rows[at].symbol, worst, what));
  }

  // Whether all forecasts are the same although the windows differ.
  bool is_constant(const ModeRun& run, std::size_t s) const {
    const std::vector<Forecast>& all = run.forecasts[s];
    return !all_equal(windows_[s]) &&
           std::all_of(all.begin() + 1, all.end(), [&](const Forecast& x) {
             return x.mean == all.front().mean && x.quantiles == all.front().quantiles;
           });
  }

  // Optimised modes must give the same bits.
  void judge_optimised(CompareReport& report) {
    std::optional<Mode> first;
    std::size_t different = 0, values = 0;
    std::vector<std::string_view> names;
    for (const Mode mode : modes_) {
      if (mode == Mode::reference || !has_run(mode)) continue;
      if (!first) first = mode;
      names.push_back(name_of(mode));
      ModeRun& run = runs_.at(mode);
      for (std::size_t s = 0; s < run.rows.size(); ++s) {
        CompareRow& row = run.rows[s];
        row.differing_optimised = count_differing(runs_.at(*first).forecasts[s], run.forecasts[s]);
        different += row.differing_optimised;
        values += row.num_values;
      }
    }
    if (!first) return;
    report.checks.push_back(equality_check("same-bits", different, values,
                                           fmt::format("{} of {} numbers differ between {}",
                                                       different, values, fmt::join(names, ", "))));
  }

  void collect(CompareReport& report) {
    for (std::size_t s = 0; s < windows_.size(); ++s) {
      for (const Mode mode : modes_) {
        if (!has_run(mode)) continue;
        const CompareRow& row = report.rows.emplace_back(std::move(runs_.at(mode).rows[s]));
        if (auto remark =
                tail_remark(fmt::format("{} on {}", name_of(mode), row.symbol), row.latency)) {
          report.warnings.push_back(std::move(*remark));
        }
      }
    }
  }

  const CompareOptions& options_;
  std::vector<Mode> modes_;
  std::vector<Windows> windows_;      // [symbol]
  std::vector<std::string> remarks_;  // about the data
  std::map<Mode, ModeRun> runs_;
  ModelInfo reference_model_;
  int done_ = 0, total_ = 0;
};

void check_options(const CompareOptions& options) {
  if (options.symbols.empty()) {
    fail(ErrorCode::invalid_argument, "there is no data to compare the modes on; name a file");
  }
  for (std::size_t i = 0; i < options.symbols.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (options.symbols[i].name != options.symbols[j].name) continue;
      fail(ErrorCode::invalid_argument, "{} is named twice; name each symbol once",
           options.symbols[i].name);
    }
  }
  if (std::all_of(options.modes.begin(), options.modes.end(),
                  [](Mode mode) { return mode == Mode::reference; })) {
    fail(
        ErrorCode::invalid_argument,
        "the modes are only reference: there is nothing to compare; name an optimised one, or all");
  }
  require_optimised_dtype(options.engine.dtype);
}

}  // namespace

CompareReport compare_modes(const CompareOptions& options) {
  check_options(options);
  return Comparison(options).run();
}

}  // namespace toto::validate
