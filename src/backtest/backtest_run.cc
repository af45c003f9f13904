#include "backtest/backtest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backtest/backtest_report.h"
#include "backtest/forecast_source.h"
#include "backtest/signal.h"
#include "backtest/universe.h"
#include "base/error.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

constexpr RunFile kFiles[] = {
    {"forecasts.csv",
     [](const BacktestRun& run, const TextSink& sink) { write_forecasts(run.results, sink); }},
    {"trades.csv",
     [](const BacktestRun& run, const TextSink& sink) { write_trades(run.results, sink); }},
    {"returns.csv",
     [](const BacktestRun& run, const TextSink& sink) { write_returns(run.results, sink); }},
    {"report.html", [](const BacktestRun& run, const TextSink& sink) { sink(run.report_html); }},
    {"results.json", [](const BacktestRun& run, const TextSink& sink) { sink(run.results_json); }},
};

std::string described_work(const EngineSource& source) {
  const auto& [computed, reused] = source.patches();
  if (source.num_computed() == 0) return "Every forecast was in the cache.";
  return fmt::format(
      "{} forecasts were computed: {} patches of context, {} more reused from earlier windows.",
      source.num_computed(), computed, reused);
}

// One pass of the run over its target bars, or over some of them.
class BacktestRunner {
 public:
  BacktestRunner(const BacktestSpec& spec, const Engine& engine, const RunHooks& hooks,
                 BacktestRun& run)
      : spec_(spec),
        engine_(engine),
        hooks_(hooks),
        run_(run),
        cache_(make_cache(options_for(spec.lag))) {}

  // With the lag of the run.
  std::vector<SymbolResult> walk(const RunPlan& plan) {
    return walk(plan, options_for(spec_.lag), cache_, "forecast");
  }
  std::vector<SymbolResult> walk_with_lag(const RunPlan& plan, std::size_t lag) {
    const SourceOptions options = options_for(lag);
    ForecastCache cache = make_cache(options);
    return walk(plan, options, cache, "decision lag");
  }

  // After walk() all forecasts but those of the coming bars are in the cache.
  std::vector<SymbolSignal> signals(std::span<const SymbolPlan> plans, std::string_view job) {
    SourceOptions options = options_for(spec_.lag);
    options.progress = progress(job, "forecasts");
    EngineSource source(engine_, options, cache_);
    auto signals = signals_of(plans, spec_.strategies, source);
    finish(source, cache_);
    return signals;
  }

  LookaheadCheck prove() {
    const SourceOptions options = options_for(spec_.lag);
    ForecastCache nothing;  // with the run's cache the check would be meaningless
    EngineSource source(engine_, options, nothing);
    LookaheadCheck check = check_no_lookahead(
        run_.results, source, spec_.prove_no_lookahead ? Checked::all : Checked::sample,
        progress("no lookahead", "decisions"));
    run_.num_forecasts += source.num_computed();
    return check;
  }

 private:
  std::vector<SymbolResult> walk(const RunPlan& plan, SourceOptions options, ForecastCache& cache,
                                 std::string_view job) {
    options.progress = progress(job, "forecasts");
    EngineSource source(engine_, options, cache);
    auto forecasts = forecast_all(plan.symbols, source);
    finish(source, cache);
    if (run_.work.empty()) run_.work = described_work(source);
    return evaluate(plan.symbols, std::move(forecasts), spec_.strategies);
  }
  void finish(const EngineSource& source, const ForecastCache& cache) {
    for (const std::string& problem : cache.warnings()) {
      if (std::ranges::find(run_.warnings, problem) == run_.warnings.end()) {
        run_.warnings.push_back(problem);
      }
    }
    run_.num_forecasts += source.num_computed();
  }
  ForecastCache make_cache(const SourceOptions& options) const {
    if (hooks_.cache_folder.empty()) return {};
    return {hooks_.cache_folder, cache_setting(engine_, options)};
  }
  SourceOptions options_for(std::size_t lag) const {
    SourceOptions options = source_options(spec_, lag);
    options.reuse_prefixes = hooks_.reuse_prefixes;
    options.forecast.cancelled = hooks_.cancelled;
    return options;
  }
  ProgressTo progress(std::string_view job, std::string_view unit) const {
    return hooks_.progress ? hooks_.progress(job, unit) : ProgressTo();
  }

  const BacktestSpec& spec_;
  const Engine& engine_;
  const RunHooks& hooks_;
  BacktestRun& run_;
  ForecastCache cache_;  // of the forecasts with the lag of the run
};

}  // namespace

std::vector<std::string> PreparedBacktest::warnings() const {
  std::vector<std::string> all;
  if (std::string warning = fill_warning(spec); !warning.empty()) all.push_back(std::move(warning));
  all.insert(all.end(), notes.begin(), notes.end());
  for (const SkippedSymbol& item : plan.skipped) {
    all.push_back(fmt::format("{}; skipped", item.reason));
  }
  return all;
}

void PreparedBacktest::require_symbols() const {
  if (!plan.symbols.empty()) return;
  fail(ErrorCode::corrupt_file, "no symbol could be run: {}",
       plan.skipped.empty() ? "there is no data" : plan.skipped.front().reason);
}

void BacktestRun::require_proof() const {
  if (lookahead.passed()) return;
  fail(ErrorCode::internal, "{}", lookahead.failure());
}

PreparedBacktest prepare(BacktestSpec spec, tables::BarFiles data,
                         std::span<const DataFile> earlier, const std::string& origin) {
  PreparedBacktest prepared;
  prepared.spec = std::move(spec);
  prepared.bars = std::move(data.bars);
  prepared.plan = plan_run(prepared.bars, prepared.spec);
  prepared.files = data_files(prepared.bars);
  prepared.notes = data_changes(earlier, prepared.files, origin);
  std::ranges::move(data.notes, std::back_inserter(prepared.notes));
  std::ranges::copy(prepared.plan.notes, std::back_inserter(prepared.notes));
  std::ranges::move(notes_on(prepared.bars, prepared.spec), std::back_inserter(prepared.notes));
  return prepared;
}

std::optional<tables::Bars> read_benchmark(const BacktestSpec& spec) {
  if (spec.benchmark.empty()) return {};
  std::vector<tables::Bars> found = tables::read_bars(spec.benchmark);
  if (found.size() != 1) {
    fail(ErrorCode::corrupt_file, "{}: has {} symbols, expected one as the benchmark",
         spec.benchmark, found.size());
  }
  return std::move(found.front());
}

std::optional<tables::Bars> take_benchmark(const BacktestSpec& spec, tables::BarFiles& data) {
  if (spec.benchmark.empty()) return {};
  const auto found = std::ranges::find(data.bars, spec.benchmark, &tables::Bars::symbol);
  if (found == data.bars.end()) {
    fail(ErrorCode::invalid_argument, "benchmark is {}, expected the name of one of the tables",
         quoted(spec.benchmark));
  }
  std::optional<tables::Bars> bars = std::move(*found);
  data.bars.erase(found);
  return bars;
}

BacktestRun run(const PreparedBacktest& prepared, const Engine& engine, const std::string& model,
                const RunHooks& hooks) {
  const BacktestSpec& spec = prepared.spec;
  BacktestRun run;
  BacktestRunner runner(spec, engine, hooks, run);
  run.results = runner.walk(prepared.plan);
  run.lookahead = runner.prove();
  // The same run with another decision lag: an edge that one bar of delay destroys is not real.
  std::vector<SymbolResult> other_results;
  BacktestSpec other = spec;
  other.lag = spec.lag == 1 ? 2 : 1;
  const bool lag_test = spec.lag_test && hooks.report;
  if (lag_test) {
    other_results = runner.walk_with_lag(with_lag(prepared.plan, other), other.lag);
  }
  const tables::EngineBlock block = tables::describe(engine, model, spec.seed);
  run.results_json = results_json(run.results, block, spec, prepared.warnings(), prepared.files);
  if (hooks.report) {
    // Of the symbols with details only, and not for a period that may end long before the file.
    std::vector<tables::Bars> coming;
    std::vector<SymbolSignal> signals;
    if (!spec.to) {
      for (const std::size_t i : telling_symbols(run.results, kMaxDetailed)) {
        coming.push_back(*run.results[i].plan.bars);
      }
      coming = with_coming_bars(coming, spec.lag);
      signals = runner.signals(plan_run(coming, spec).symbols, "next bar");
    }
    run.report_html =
        report_html({.results = run.results,
                     .engine = block,
                     .spec = spec,
                     .lookahead = run.lookahead,
                     .notes = prepared.notes,
                     .skipped = prepared.plan.skipped,
                     .other_lag = lag_test ? other.lag : 0,
                     .other_results = other_results,
                     .signals = signals,
                     .benchmark = prepared.benchmark ? &*prepared.benchmark : nullptr});
  }
  return run;
}

SignalRun run_signal(const PreparedBacktest& prepared, const Engine& engine,
                     const std::string& model, const RunHooks& hooks) {
  BacktestRun run;
  SignalRun result;
  BacktestRunner runner(prepared.spec, engine, hooks, run);
  result.signals = runner.signals(prepared.plan.symbols, "forecast");
  result.num_forecasts = run.num_forecasts;
  result.warnings = std::move(run.warnings);
  result.json =
      signal_json(result.signals, tables::describe(engine, model, prepared.spec.seed), prepared);
  return result;
}

std::span<const RunFile> run_files() noexcept { return kFiles; }

}  // namespace toto::backtest
