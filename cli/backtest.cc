// `toto backtest`: read, forecast, trade, prove, report; and `toto backtest compare`. Everything
// wrong with the request is said before anything is read, everything wrong with the data before the
// model is loaded.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "backtest/compare.h"
#include "backtest/lookahead.h"
#include "backtest/outputs.h"
#include "backtest/report.h"
#include "backtest/run.h"
#include "backtest/universe.h"
#include "backtest_request.h"
#include "base/error.h"
#include "commands.h"
#include "interrupt.h"
#include "io/atomic_file.h"
#include "io/utf8.h"
#include "output.h"
#include "progress.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;
using backtest::LookaheadCheck;
using backtest::SymbolResult;

constexpr std::array<const char*, 5> kFiles = {"results.json", "forecasts.csv", "trades.csv",
                                               "returns.csv", "report.html"};

// ---------------------------------------------------------------------------------------- compare

int compare(const BacktestFlags& flags) {
  if (flags.data.size() != 3) {
    fail(ErrorCode::invalid_argument,
         "compare has {} results, expected two: toto backtest compare A B, folders or their "
         "results.json",
         flags.data.size() - 1);
  }
  // The folder of a run stands for its results.
  const auto results_of = [](const std::string& path) {
    return std::filesystem::is_directory(path) ? path + "/results.json" : path;
  };
  const std::string path_a = results_of(flags.data[1]), path_b = results_of(flags.data[2]);
  check_outputs({{"A", path_a}, {"B", path_b}}, {{"--json", flags.json}});
  const io::Json a = backtest::read_results(path_a);
  const io::Json b = backtest::read_results(path_b);
  const backtest::Comparison comparison = backtest::compare(a, b, path_a, path_b);
  for (const backtest::ComparedStrategy& item : comparison.strategies) {
    if (item.verdict != backtest::ComparedStrategy::Verdict::warn) continue;
    print_warning(fmt::format("{} {}: total return is {:.4f} in A and {:.4f} in B", item.symbol,
                              item.strategy, item.return_a, item.return_b));
  }
  publish(flags.json, backtest::comparison_json(comparison), backtest::comparison_text(comparison));
  if (comparison.strategies.empty()) print_line("error: there is nothing to compare");
  return comparison.passed() ? 0 : 1;
}

// ---------------------------------------------------------------------------------------- the run

// The engine's forecasts for one decision lag, with a cache of their own.
class Forecasts {
 public:
  Forecasts(const BacktestRequest& request, const Engine& engine, std::size_t lag, bool use_disk)
      : options_(options_for(request, lag)),
        cache_(use_disk ? backtest::ForecastCache(request.engine.cache_dir + "/forecasts",
                                                  backtest::cache_setting(engine, options_))
                        : backtest::ForecastCache()),
        source_(engine, options_, cache_) {}
  Forecasts(const Forecasts&) = delete;
  Forecasts& operator=(const Forecasts&) = delete;

  backtest::EngineSource& source() { return source_; }
  const std::string& problem() const { return cache_.problem(); }
  void show(Progress& progress) {
    options_.progress = [&progress](std::size_t done, std::size_t total) {
      progress.update(done, total);
    };
  }

 private:
  static backtest::SourceOptions options_for(const BacktestRequest& request, std::size_t lag) {
    backtest::SourceOptions options{.transform = request.run.transform,
                                    .return_scale = request.run.return_scale,
                                    .lag = lag,
                                    .reuse_prefixes = request.reuse_prefixes,
                                    .forecast = request.forecast};
    options.forecast.cancelled = InterruptGuard::interrupted;
    return options;
  }

  backtest::SourceOptions options_;
  backtest::ForecastCache cache_;
  backtest::EngineSource source_;
};

struct Walk {
  std::vector<SymbolResult> results;
  std::string work;  // what the network had to do, a sentence
};

std::string described_work(const backtest::EngineSource& source) {
  const auto& [computed, reused] = source.patches();
  if (source.num_computed() == 0) return "Every forecast was in the cache.";
  return fmt::format(
      "{} forecasts were computed: {} patches of context, {} more taken over from earlier windows.",
      source.num_computed(), computed, reused);
}

Walk walk(const BacktestRequest& request, const backtest::RunPlan& plan, const Engine& engine,
          std::size_t lag, const std::string& job) {
  Forecasts forecasts(request, engine, lag, !request.no_cache);
  Progress progress(job, "forecasts", request.progress);
  forecasts.show(progress);
  auto answers = backtest::forecast_all(plan.symbols, forecasts.source());
  if (!forecasts.problem().empty()) print_warning(forecasts.problem());
  return {backtest::evaluate(plan.symbols, std::move(answers), request.run.strategies),
          described_work(forecasts.source())};
}

// The same run decided one bar earlier or later: an edge that a bar of delay destroys is none.
std::vector<SymbolResult> lag_test(const BacktestRequest& request,
                                   std::span<const backtest::Bars> bars, const Engine& engine,
                                   std::size_t lag) {
  backtest::RunOptions options = request.run;
  options.lag = lag;
  return walk(request, backtest::plan_run(bars, options), engine, lag, "decision lag").results;
}

LookaheadCheck prove(const BacktestRequest& request, std::span<const SymbolResult> results,
                     const Engine& engine) {
  Forecasts forecasts(request, engine, request.run.lag, false);
  Progress progress("no lookahead", "decisions", request.progress);
  return backtest::check_no_lookahead(
      results, forecasts.source(),
      request.prove_no_lookahead ? backtest::Checked::all : backtest::Checked::sample,
      [&progress](std::size_t done, std::size_t total) { progress.update(done, total); });
}

std::string path_of(const BacktestRequest& request, const char* name) {
  return (fs::path(request.output_dir) / name).string();
}

void check_places(const BacktestRequest& request) {
  std::vector<NamedPath> inputs, outputs = {{"--json", request.json}};
  for (const std::string& path : request.data) {
    std::error_code ignored;  // reading it will say what is wrong with it
    if (!fs::is_directory(path, ignored)) inputs.push_back({"DATA", path});
  }
  for (const char* name : kFiles) outputs.push_back({"--output-dir", path_of(request, name)});
  check_outputs(inputs, outputs);
}

void write_streamed(const BacktestRequest& request, const char* name,
                    std::span<const SymbolResult> results,
                    void (*write)(std::span<const SymbolResult>, const io::TextSink&)) {
  io::AtomicFile file(path_of(request, name));
  write(results, [&file](std::string_view text) { file.write(text); });
  file.commit();
}

std::string percent(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:+.2f} %", 100 * value);
}

std::string ratio(double value) { return std::isnan(value) ? "-" : fmt::format("{:.2f}", value); }

std::string symbols_table(std::span<const SymbolResult> results) {
  std::string text = fmt::format("{:<12} {:<18} {:>10} {:>8} {:>10} {:>7}\n", "symbol", "strategy",
                                 "return", "Sharpe", "drawdown", "trades");
  for (const SymbolResult& result : results) {
    for (const backtest::StrategyResult& strategy : result.strategies) {
      const backtest::TradingMetrics& metrics = strategy.metrics;
      text += fmt::format("{:<12} {:<18} {:>10} {:>8} {:>10} {:>7}\n",
                          io::one_line(result.plan.bars->symbol), name_of(strategy.strategy),
                          percent(metrics.total_return), ratio(metrics.sharpe),
                          percent(metrics.max_drawdown), metrics.trades);
    }
  }
  return text + "\n";
}

std::string universe_table(std::span<const SymbolResult> results) {
  const auto rows = backtest::by_median(backtest::universe_of(results));
  const bool has_portfolio = rows.front().portfolio.has_value();
  const auto symbol_return = [](const backtest::SymbolReturn& item) {
    return fmt::format("{} {}", io::one_line(item.symbol), percent(item.total_return));
  };
  std::string text = fmt::format("{:<18} {:>10} {:>12}{}  {:<24} {}\n",
                                 fmt::format("{} symbols", results.size()), "median", "beats hold",
                                 has_portfolio ? "  portfolio   Sharpe" : "", "best", "worst");
  for (const backtest::UniverseRow& row : rows) {
    const auto portfolio = row.portfolio.value_or(backtest::PortfolioMetrics{});
    const bool is_benchmark = row.strategy == backtest::Strategy::buy_hold;
    text += fmt::format(
        "{:<18} {:>10} {:>12}{}  {:<24} {}\n", name_of(row.strategy), percent(row.median_return),
        is_benchmark ? "" : fmt::format("{} of {}", row.num_ahead, results.size()),
        has_portfolio
            ? fmt::format(" {:>10} {:>8}", percent(portfolio.total_return), ratio(portfolio.sharpe))
            : "",
        symbol_return(row.best), symbol_return(row.worst));
  }
  return text + "\n";
}

// Each symbol of a few, all together of several, and what their annual figures rest on.
std::string tables(std::span<const SymbolResult> results) {
  constexpr std::size_t kFew = 12;
  std::string text;
  if (results.size() <= kFew) text += symbols_table(results);
  if (results.size() > 1) text += universe_table(results);
  for (const std::string& line : backtest::calendar_lines(results)) text += line + "\n";
  return text;
}

std::string names_of(const std::vector<backtest::Skipped>& skipped) {
  std::string names;
  for (const backtest::Skipped& item : skipped) names += (names.empty() ? "" : ", ") + item.symbol;
  return names;
}

void write_all(const BacktestRequest& request, std::span<const SymbolResult> results,
               const std::string& json, const std::string& report) {
  InterruptGuard::check();
  write_streamed(request, "forecasts.csv", results, backtest::write_forecasts);
  write_streamed(request, "trades.csv", results, backtest::write_trades);
  write_streamed(request, "returns.csv", results, backtest::write_returns);
  io::write_file_atomically(path_of(request, "report.html"), report);
  io::write_file_atomically(path_of(request, "results.json"), json);
}

int run(const BacktestRequest& request) {
  check_places(request);
  const std::vector<backtest::Bars> bars = backtest::read_all_bars(request.data);
  const backtest::RunPlan plan = backtest::plan_run(bars, request.run);
  const std::vector<backtest::DataFile> files = backtest::data_files(bars);
  std::vector<std::string> notes =
      backtest::data_changes(request.earlier_data, files, request.earlier_results);
  std::ranges::move(backtest::notes_on(bars, request.run), std::back_inserter(notes));
  if (const std::string warning = fill_warning(request.run); !warning.empty()) {
    print_warning(warning);
  }
  for (const std::string& note : notes) print_warning(note);
  for (const backtest::Skipped& item : plan.skipped) {
    print_warning(fmt::format("{}; skipped", item.reason));
  }
  if (plan.symbols.empty()) {
    fail(ErrorCode::corrupt_file, "no symbol could be run: {}", plan.skipped.front().reason);
  }

  const InterruptGuard guard;
  const LoadedEngine loaded = load_engine(request.engine);
  for (const std::string& warning : loaded.warnings) print_warning(warning);
  const Walk walked = walk(request, plan, loaded.engine, request.run.lag, "forecast");
  const std::vector<SymbolResult>& results = walked.results;
  const LookaheadCheck lookahead = prove(request, results, loaded.engine);
  backtest::ReportInput report{.results = results,
                               .engine = loaded.block(),
                               .options = request.run,
                               .lookahead = lookahead,
                               .notes = notes,
                               .skipped = plan.skipped};
  std::vector<SymbolResult> other;
  if (request.lag_test) {
    report.other_lag = request.run.lag == 1 ? 2 : 1;
    other = lag_test(request, bars, loaded.engine, report.other_lag);
    report.other_results = other;
  }
  const std::string json = backtest::results_json(results, loaded.block(), request.settings, files);
  write_all(request, results, json, backtest::report_html(report));
  publish(request.json, json,
          fmt::format("{}\n{}\n{}\nwritten to {}: results.json, forecasts.csv, trades.csv, "
                      "returns.csv, report.html\n",
                      tables(results), walked.work, backtest::lookahead_sentence(lookahead),
                      io::one_line(request.output_dir)));
  if (!lookahead.passed()) {
    print_line(fmt::format("error: the no-lookahead proof failed: {}", lookahead.first_difference));
    return 1;
  }
  if (!plan.skipped.empty()) {
    fail(ErrorCode::corrupt_file, "skipped, the rest was written: {}; the warnings say why",
         names_of(plan.skipped));
  }
  return 0;
}

int backtest_command(const BacktestFlags& flags) {
  if (!flags.data.empty() && flags.data.front() == "compare") return compare(flags);
  const BacktestRequest request = make_backtest_request(flags);
  try {
    return run(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || request.no_cache) throw;
    fail(ErrorCode::cancelled,
         "interrupted; nothing was written, but the forecasts made so far are kept: the same "
         "command goes on from there");
  }
}

}  // namespace

void add_backtest(Arguments& arguments) {
  const auto flags = std::make_shared<BacktestFlags>();
  Command command = arguments.add_command(
      "backtest", "walk forward, trade on the forecasts, report; `backtest compare A B` gates",
      "toto backtest examples/data/AAPL.csv --windows 50 --output-dir backtest-out");
  add_backtest_options(command, *flags);
  command.run([flags] { return backtest_command(*flags); });
}

}  // namespace toto::cli
