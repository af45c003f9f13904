#include "backtest/backtest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backtest/backtest_report.h"
#include "backtest/forecast_source.h"
#include "base/error.h"

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
      : spec_(spec), engine_(engine), hooks_(hooks), run_(run) {}

  std::vector<SymbolResult> walk(const RunPlan& plan, std::size_t lag, std::string_view job) {
    SourceOptions options = options_for(lag);
    options.progress = progress(job, "forecasts");
    ForecastCache cache = hooks_.cache_folder.empty()
                              ? ForecastCache()
                              : ForecastCache(hooks_.cache_folder, cache_setting(engine_, options));
    EngineSource source(engine_, options, cache);
    auto forecasts = forecast_all(plan.symbols, source);
    run_.warnings.insert(run_.warnings.end(), cache.warnings().begin(), cache.warnings().end());
    run_.num_forecasts += source.num_computed();
    if (run_.work.empty()) run_.work = described_work(source);
    return evaluate(plan.symbols, std::move(forecasts), spec_.strategies);
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

PreparedBacktest prepare(BacktestSpec spec, std::vector<tables::Bars> bars,
                         std::span<const DataFile> earlier, const std::string& origin) {
  PreparedBacktest prepared;
  prepared.spec = std::move(spec);
  prepared.bars = std::move(bars);
  prepared.plan = plan_run(prepared.bars, prepared.spec);
  prepared.files = data_files(prepared.bars);
  prepared.notes = data_changes(earlier, prepared.files, origin);
  std::ranges::move(notes_on(prepared.bars, prepared.spec), std::back_inserter(prepared.notes));
  return prepared;
}

BacktestRun run(const PreparedBacktest& prepared, const Engine& engine, const std::string& model,
                const RunHooks& hooks) {
  const BacktestSpec& spec = prepared.spec;
  BacktestRun run;
  BacktestRunner runner(spec, engine, hooks, run);
  run.results = runner.walk(prepared.plan, spec.lag, "forecast");
  run.lookahead = runner.prove();
  // The same run with another decision lag: an edge that one bar of delay destroys is not real.
  std::vector<SymbolResult> other_results;
  BacktestSpec other = spec;
  other.lag = spec.lag == 1 ? 2 : 1;
  const bool lag_test = spec.lag_test && hooks.report;
  if (lag_test) {
    other_results = runner.walk(plan_run(prepared.bars, other), other.lag, "decision lag");
  }
  const tables::EngineBlock block = tables::describe(engine, model, spec.seed);
  run.results_json = results_json(run.results, block, spec, prepared.files);
  if (hooks.report) {
    run.report_html = report_html({.results = run.results,
                                   .engine = block,
                                   .spec = spec,
                                   .lookahead = run.lookahead,
                                   .notes = prepared.notes,
                                   .skipped = prepared.plan.skipped,
                                   .other_lag = lag_test ? other.lag : 0,
                                   .other_results = other_results});
  }
  return run;
}

std::span<const RunFile> run_files() noexcept { return kFiles; }

}  // namespace toto::backtest
