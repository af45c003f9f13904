#include "validate/stress_runs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/nearest.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "validate/mode_checks.h"
#include "validate/stress_parts.h"
#include "validate/stress_workload.h"

namespace toto::validate {
namespace {

constexpr int kContext = 512, kHorizon = 16;  // of the windows that measure accuracy

constexpr const char* kNotFinished = "the iteration did not finish";

constexpr std::array<std::string_view, 3> kLevelNames = {"quick", "full", "production-check"};

using Windows = std::vector<Window>;

StressAnswer answer_of(const std::vector<Forecast>& forecasts) {
  StressAnswer answer;
  for (const Forecast& forecast : forecasts) {
    const std::vector<std::uint32_t> bits = bits_of(forecast);
    answer.bits.insert(answer.bits.end(), bits.begin(), bits.end());
    for (const auto* some : {&forecast.mean, &forecast.median, &forecast.quantiles}) {
      answer.values.insert(answer.values.end(), some->begin(), some->end());
    }
  }
  return answer;
}

// Continues a digest (FNV-1a, a word at a time) with the numbers of a forecast. Keeping the numbers
// themselves would look like a memory leak.
std::uint64_t digest_of(const Forecast& forecast, std::uint64_t digest) {
  for (const std::uint32_t word : bits_of(forecast)) digest = (digest ^ word) * 0x100000001b3;
  return digest;
}

class Stress {
 public:
  explicit Stress(const StressOptions& options)
      : options_(options), iterations_(iterations_of(options.level)), modes_(modes_of(options)) {
    for (const Symbol& symbol : options.symbols) {
      windows_.push_back(held_out_windows(symbol, kContext, kHorizon, iterations_, &remarks_));
    }
  }

  StressReport run() {
    StressReport report;
    report.warnings = remarks_;
    for (const Mode mode : modes_) {
      ModeRecord& record = run_.modes[mode];
      record.complaint = complaint_of_mode(mode, [&] { run_mode(mode, record, report); });
      complete_rows(mode, record);
      done_ =
          steps_of_mode_ * static_cast<int>(run_.modes.size());  // even if the mode failed early
    }
    describe(report);
    judge_stress(options_, run_, report);
    for (const Mode mode : modes_) {
      for (StressRow& row : run_.modes[mode].rows) report.rows.push_back(std::move(row));
    }
    return report;
  }

 private:
  static std::vector<Mode> modes_of(const StressOptions& options) {
    std::vector<Mode> modes = all_modes(options.engine.dtype);
    if (modes.front() != Mode::reference) modes.insert(modes.begin(), Mode::reference);
    return modes;
  }

  void step() {
    ++done_;
    const int total = steps_of_mode_ * static_cast<int>(modes_.size());
    if (options_.progress) options_.progress(std::min(done_, total), total);
    if (options_.cancelled && options_.cancelled()) {
      fail(ErrorCode::cancelled, "the stress run was cancelled");
    }
  }

  void set_model(const Runner& runner) {
    model_ = runner.model();
    requests_ = mixed_requests(options_, model_);
    long_request_ = long_request(options_, model_);
    for (const StressRequest& request : requests_) run_.requests.push_back(request.what);
    for (const Windows& windows : windows_) {
      run_.symbols.push_back(windows[0].context.id);
      run_.flat.push_back(all_equal(windows));
    }
    // Steps of one mode: the warm-up of every shape, then windows, every shape, concurrent callers
    // and cancelled calls in each iteration; the last three once more during the warm-up.
    const int shapes = static_cast<int>(requests_.size());
    steps_of_mode_ = shapes + (iterations_ + 1) * (shapes + 2) + iterations_;
  }

  // Whether a mode repeats a request in every iteration. `reference` is slow: it answers heavy
  // requests once, and those of a large model never.
  bool repeats(Mode mode, const StressRequest& request) const {
    return mode != Mode::reference || !request.heavy;
  }
  bool answers(Mode mode, const StressRequest& request) const {
    return repeats(mode, request) || !is_large(model_);
  }

  void run_mode(Mode mode, ModeRecord& run, StressReport& report) {
    const PeakMemory memory;
    const std::unique_ptr<Runner> runner = options_.load(
        options_.model, noting_weights(engine_for(options_.engine, mode), report.weights));
    if (mode == Mode::reference) set_model(*runner);
    for (const std::string& warning : runner->model().warnings) note_once(warning, report.warnings);
    run.by_symbol.resize(windows_.size());
    run.rows.reserve(static_cast<std::size_t>(iterations_));
    // Reserved now: growing later would look like a leak.
    const std::size_t calls = requests_.size() * static_cast<std::size_t>(iterations_ + 1);
    run.mixed.reserve(calls);
    run.concurrent.reserve(calls * static_cast<std::size_t>(options_.callers));
    warm_up(mode, *runner, run);
    run.mixed.clear();
    run.concurrent.clear();
    for (int i = 0; i < iterations_; ++i) {
      const std::int64_t replans = runner->replans();
      StressRow& row = run.rows.emplace_back();
      row.mode = mode;
      row.iteration = i;
      row.complaint = kNotFinished;
      run_windows(*runner, i, run, row);
      run_load(mode, *runner, run);
      row.replans = runner->replans() - replans;
      row.peak_memory_mb = memory.megabytes(runner->model());
      release_freed_memory();  // only memory in use counts
      row.resident = options_.resident();
      row.heap = options_.heap();
      row.complaint.clear();
    }
  }

  // Every shape once, then everything else an iteration does.
  void warm_up(Mode mode, Runner& runner, ModeRecord& run) {
    for (const StressRequest& request : requests_) {
      StressAnswer& answer = run.answers.emplace_back();
      if (answers(mode, request)) {
        answer.complaint = complaint_of(
            [&] { answer = answer_of(runner.forecast(request.batch, request.options)); });
      }
      step();
    }
    for (const Windows& windows : windows_) (void)forecast(runner, windows.front());
    run.probe = probe_network(runner, windows_.front().front().context);
    run.answers.push_back(answer_of(runner.forecast(long_request_.batch, long_request_.options)));
    run_load(mode, runner, run);
    runner.finish_warm_up();
  }

  TimedForecast forecast(Runner& runner, const Window& window) const {
    return forecast_window(runner, window,
                           {.horizon = kHorizon,
                            .max_context = kContext,
                            .seed = options_.seed,
                            .cancelled = options_.cancelled});
  }

  void run_windows(Runner& runner, int iteration, ModeRecord& run, StressRow& row) {
    for (std::size_t s = 0; s < windows_.size(); ++s) {
      const Window& window = windows_[s][static_cast<std::size_t>(iteration)];
      const TimedForecast timed = forecast(runner, window);
      row.milliseconds.push_back(timed.milliseconds);
      row.digest = digest_of(timed.forecast, row.digest);
      row.accuracy.add(timed.forecast.mean, window.actual);
      run.by_symbol[s].add(timed.forecast.mean, window.actual);
    }
    step();
  }

  void run_load(Mode mode, Runner& runner, ModeRecord& run) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (repeats(mode, requests_[i])) {
        compare(runner, i, "", run.answers, run.differing, run.mixed);
      }
      step();
    }
    run_callers(runner, run);
    step();
    run_cancelled(runner, run);
    const std::unique_ptr<Runner> again =
        options_.load(options_.model, engine_for(options_.engine, mode));
    std::vector<double> first_call;  // not counted: this engine is not warm
    compare(*again, 0, " of the reloaded model", run.answers, run.differing, first_call);
    step();
  }

  // Repeats a request, takes the time and counts the numbers that have changed.
  void compare(Runner& runner, std::size_t index, std::string_view who,
               const std::vector<StressAnswer>& answers, FailureCount& differing,
               std::vector<double>& milliseconds) const {
    const StressAnswer& expected = answers[index];
    if (!expected.complaint.empty()) return;  // has failed already
    const StressRequest& request = requests_[index];
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Forecast> forecasts = runner.forecast(request.batch, request.options);
    milliseconds.push_back(milliseconds_since(start));
    const StressAnswer now = answer_of(forecasts);
    ++differing.tried;
    differing.add(num_different(expected.bits, now.bits),
                  fmt::format("the answer to {}{} differs from the first one", request.what, who));
  }

  // Threads start at different requests, so that different shapes run concurrently. Only the engine
  // is shared; each thread counts separately.
  void run_callers(Runner& runner, ModeRecord& run) {
    struct Caller {
      FailureCount differing;
      std::vector<double> milliseconds;
    };
    std::vector<Caller> own(static_cast<std::size_t>(options_.callers));
    std::vector<std::exception_ptr> errors(own.size());
    std::vector<std::jthread> threads;
    threads.reserve(own.size());
    for (std::size_t t = 0; t < own.size(); ++t) {
      threads.emplace_back([&, t] {
        try {
          for (std::size_t i = 0; i < requests_.size(); ++i) {
            const std::size_t index = (i + t) % requests_.size();
            if (requests_[index].heavy) continue;
            compare(runner, index, " from concurrent threads", run.answers, own[t].differing,
                    own[t].milliseconds);
          }
        } catch (...) {
          errors[t] = std::current_exception();
        }
      });
    }
    threads.clear();  // waits for all of them
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    for (const auto& [differing, milliseconds] : own) {
      run.differing.tried += differing.tried;
      run.differing.add(differing.count, differing.first);
      run.concurrent.insert(run.concurrent.end(), milliseconds.begin(), milliseconds.end());
    }
  }

  // Cancels a call at its first and second `cancelled` query, then repeats it: cancelled calls must
  // not change later ones.
  void run_cancelled(Runner& runner, ModeRecord& run) {
    for (const int stop_at : {1, 2}) {
      int asked = 0;
      ForecastOptions request = long_request_.options;
      request.cancelled = [&asked, stop_at] { return ++asked >= stop_at; };
      ++run.not_cancelled.tried;
      try {
        (void)runner.forecast(long_request_.batch, request);
        run.not_cancelled.add(1, fmt::format("a call cancelled at query {} did not stop", stop_at));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::cancelled) throw;
      }
    }
    const StressAnswer now = answer_of(runner.forecast(long_request_.batch, long_request_.options));
    ++run.differing.tried;
    run.differing.add(num_different(run.answers.back().bits, now.bits),
                      "the answer after a cancelled call differs from the first one");
  }

  // Adds rows for the iterations that did not run.
  void complete_rows(Mode mode, ModeRecord& run) const {
    for (StressRow& row : run.rows) {
      if (!row.complaint.empty()) row.complaint = run.complaint;
    }
    for (int i = static_cast<int>(run.rows.size()); i < iterations_; ++i) {
      StressRow& row = run.rows.emplace_back();
      row.mode = mode;
      row.iteration = i;
      row.complaint = run.complaint;
    }
  }

  void describe(StressReport& report) const {
    report.level = options_.level;
    report.describe(model_);
    report.describe(resolve_options(engine_for(options_.engine, Mode::standard)), options_.seed);
    report.callers = options_.callers;
    report.num_requests = requests_.size();
    report.symbols = run_.symbols;
    Accuracy persistence;
    for (const Windows& windows : windows_) {
      for (const Window& window : windows) {
        persistence.add(std::vector<float>(window.actual.size(), window.latest), window.actual);
      }
    }
    report.mae_persistence = persistence.mae();
  }

  const StressOptions& options_;
  int iterations_;
  std::vector<Mode> modes_;
  std::vector<Windows> windows_;      // [symbol][iteration]
  std::vector<std::string> remarks_;  // about the data
  ModelInfo model_;
  std::vector<StressRequest> requests_;
  StressRequest long_request_;  // its answer follows those of requests_
  StressRun run_;
  int done_ = 0, steps_of_mode_ = 0;
};

}  // namespace

std::string_view name_of(StressLevel level) noexcept {
  return kLevelNames[static_cast<std::size_t>(level)];
}

StressLevel parse_stress_level(std::string_view name) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<StressLevel>(i);
  }
  fail(ErrorCode::invalid_argument,
       "unknown stress mode {}, expected quick, full or production-check{}", quoted(name),
       did_you_mean(name, kLevelNames));
}

int iterations_of(StressLevel level) noexcept {
  constexpr std::array kIterations = {3, 10, 20};
  return kIterations[static_cast<std::size_t>(level)];
}

StressReport stress(const StressOptions& options) {
  if (options.symbols.empty()) {
    fail(ErrorCode::invalid_argument,
         "there are no held-out values to judge the forecasts by; name a file of real data");
  }
  require_optimised_dtype(options.engine.dtype);
  return Stress(options).run();
}

}  // namespace toto::validate
