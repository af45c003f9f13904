// `toto backtest` and `toto backtest compare`. Errors of the request are reported before any data
// is read, errors of the data before the model is loaded.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "backtest/backtest_report.h"
#include "backtest/backtest_run.h"
#include "backtest/compare_runs.h"
#include "backtest/universe.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/backtest/backtest_request.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "io/file_set.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;
using backtest::SymbolResult;

// ---------------------------------------------------------------------------------------- compare

int compare(const BacktestFlags& flags) {
  if (flags.data.size() != 3) {
    fail(ErrorCode::invalid_argument,
         "compare has {} results, expected two: toto backtest compare A B, folders or their "
         "results.json",
         flags.data.size() - 1);
  }
  // A folder means the results.json in it.
  const auto results_of = [](const std::string& path) {
    return std::filesystem::is_directory(path) ? path + "/results.json" : path;
  };
  const std::string path_a = results_of(flags.data[1]), path_b = results_of(flags.data[2]);
  check_outputs({{"A", path_a}, {"B", path_b}}, {{"--json", flags.json}});
  const io::Json a = backtest::read_results(path_a);
  const io::Json b = backtest::read_results(path_b);
  const backtest::RunComparison comparison = backtest::compare(a, b, path_a, path_b);
  for (const backtest::ComparedStrategy& item : comparison.strategies) {
    if (item.verdict != backtest::Verdict::warn) continue;
    print_warning(fmt::format("{} {}: total return is {:.4f} in A and {:.4f} in B", item.symbol,
                              item.strategy, item.total_return.a, item.total_return.b));
  }
  publish(flags.json, backtest::comparison_json(comparison), backtest::comparison_text(comparison));
  if (comparison.strategies.empty()) print_line("error: there is nothing to compare");
  return comparison.passed() ? 0 : 1;
}

// ---------------------------------------------------------------------------------------- the run

std::string path_of(const BacktestRequest& request, std::string_view name) {
  return (fs::path(request.output_dir) / name).string();
}

void check_places(const BacktestRequest& request) {
  std::vector<NamedPath> outputs = {{"--json", request.json}};
  for (const backtest::RunFile& file : backtest::run_files()) {
    outputs.push_back({"--output-dir", path_of(request, file.name)});
  }
  check_outputs(data_paths(request), outputs);
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
                          one_line(result.plan.bars->symbol), strategy.strategy->name,
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
    return fmt::format("{} {}", one_line(item.symbol), percent(item.total_return));
  };
  std::string text = fmt::format("{:<18} {:>10} {:>12}{}  {:<24} {}\n",
                                 fmt::format("{} symbols", results.size()), "median", "beats hold",
                                 has_portfolio ? "  portfolio   Sharpe" : "", "best", "worst");
  for (const backtest::UniverseRow& row : rows) {
    const auto portfolio = row.portfolio.value_or(backtest::PortfolioMetrics{});
    const bool is_benchmark = row.strategy == &backtest::benchmark_strategy();
    text += fmt::format(
        "{:<18} {:>10} {:>12}{}  {:<24} {}\n", row.strategy->name, percent(row.median_return),
        is_benchmark ? "" : fmt::format("{} of {}", row.num_ahead, results.size()),
        has_portfolio
            ? fmt::format(" {:>10} {:>8}", percent(portfolio.total_return), ratio(portfolio.sharpe))
            : "",
        symbol_return(row.best), symbol_return(row.worst));
  }
  return text + "\n";
}

// Each symbol if there are few, all together if there are several, and the bars per year.
std::string tables(std::span<const SymbolResult> results) {
  constexpr std::size_t kFew = 12;
  std::string text;
  if (results.size() <= kFew) text += symbols_table(results);
  if (results.size() > 1) text += universe_table(results);
  for (const std::string& line : backtest::calendar_lines(results)) text += line + "\n";
  return text;
}

// All files of the run, and where --json says. results.json is the last: with it the run is
// complete.
void write_all(const BacktestRequest& request, const backtest::BacktestRun& run) {
  InterruptGuard::check();
  io::FileSet files;
  const bool json = request.json && request.json != "-";
  if (json) files.add(*request.json, run.results_json);
  for (const backtest::RunFile& item : backtest::run_files()) {
    files.add(path_of(request, item.name),
              [&](const io::FileSet::Sink& sink) { item.write(run, sink); });
  }
  InterruptGuard::check();
  files.commit();
  if (json) print_line(fmt::format("written: {}", *request.json));
}

int run(const BacktestRequest& request) {
  check_places(request);
  backtest::PreparedBacktest prepared =
      backtest::prepare(request.spec, tables::read_all_bars(request.spec.data),
                        request.earlier_data, request.earlier_results);
  prepared.benchmark = backtest::read_benchmark(request.spec);
  print_warnings(prepared.warnings());
  prepared.require_symbols();

  const InterruptGuard guard;
  const LoadedEngine loaded = load_engine(request.engine);
  print_warnings(loaded.warnings);
  const backtest::BacktestRun run =
      backtest::run(prepared, loaded.engine, loaded.model.name, hooks_of(request));
  print_warnings(run.warnings);
  write_all(request, run);
  write_stdout(
      request.json == "-"
          ? run.results_json
          : fmt::format("{}\n{}\n{}\nwritten to {}: results.json, forecasts.csv, trades.csv, "
                        "returns.csv, report.html\n",
                        tables(run.results), run.work, backtest::lookahead_sentence(run.lookahead),
                        one_line(request.output_dir)));
  if (!run.lookahead.passed()) {
    print_line(fmt::format("error: {}", run.lookahead.failure()));
    return 1;
  }
  require_all_symbols(prepared.plan);
  return 0;
}

int backtest_command(const BacktestFlags& flags) {
  if (!flags.data.empty() && flags.data.front() == "compare") return compare(flags);
  const BacktestRequest request = make_backtest_request(flags, "backtest");
  try {
    return run(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || request.engine.no_cache) throw;
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
