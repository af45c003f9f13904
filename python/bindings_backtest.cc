// A backtest from the same parts as `toto backtest`. Its files come back as text, for
// totocpp/backtest.py to make frames of.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "backtest/lookahead.h"
#include "backtest/outputs.h"
#include "backtest/report.h"
#include "backtest/run.h"
#include "bindings.h"
#include "engine_handle.h"
#include "io/csv.h"
#include "io/json.h"

namespace toto::python {
namespace {

using backtest::SymbolResult;

// Bars that are in no file: what they are called, the symbol of a table without a column for it,
// and the table, as a file would hold it.
using Table = std::tuple<std::string, std::string, nb::bytes>;

struct Request {
  std::vector<std::string> files;
  std::vector<Table> tables;  // if there are some, no file is read
  backtest::RunOptions run;
  ForecastOptions forecast;
  bool prove_no_lookahead = false;
  bool report = false;
  std::string settings;  // a JSON object, for results.json
};

struct Answer {
  std::string results, forecasts, trades, returns, report, lookahead;
  std::vector<std::string> warnings;
};

// A member of the settings, checked and complete when they come from totocpp/backtest.py.
template <typename T>
T value(const nb::dict& settings, const char* name) {
  return nb::cast<T>(settings[name]);
}
template <typename T, typename Parse>
auto parsed(const nb::dict& settings, const char* name, const Parse& parse) {
  using Result = decltype(parse(std::declval<T>()));
  const auto given = value<std::optional<T>>(settings, name);
  return given ? std::optional<Result>(parse(*given)) : std::nullopt;
}

Request request_of(const nb::dict& settings, std::string json) {
  Request request{
      .files = {}, .tables = {}, .run = {}, .forecast = {}, .settings = std::move(json)};
  backtest::RunOptions& run = request.run;
  run.windows = value<std::optional<int>>(settings, "windows").value_or(run.windows);
  run.from = parsed<std::string>(settings, "from", backtest::parse_bound);
  run.to = parsed<std::string>(settings, "to", backtest::parse_bound);
  run.lag = value<std::size_t>(settings, "decision_lag");
  run.transform = backtest::parse_transform(value<std::string>(settings, "transform"));
  run.return_scale = value<double>(settings, "return_scale");
  const auto asset = value<std::string>(settings, "asset");
  if (asset != "auto") {
    run.asset = asset == "stock" ? backtest::Asset::stock : backtest::Asset::crypto;
  }
  run.bars_per_year = value<std::optional<double>>(settings, "bars_per_year");
  run.fee_bps = value<std::optional<double>>(settings, "fee_bps");
  run.slippage_bps = value<double>(settings, "slippage_bps");
  run.borrow_apr = value<double>(settings, "borrow_apr");
  run.fill_at_close = value<std::string>(settings, "fill") == "close";
  run.ci_multiplier = value<double>(settings, "ci_multiplier");
  run.tune_offsets = value<bool>(settings, "tune_offsets");
  if (const auto names = value<std::optional<std::vector<std::string>>>(settings, "strategies")) {
    run.strategies = {backtest::Strategy::buy_hold};  // the benchmark, always
    for (const std::string& name : *names) {
      run.strategies.push_back(backtest::parse_strategy(name));
    }
    std::sort(run.strategies.begin(), run.strategies.end());
    const auto rest = std::unique(run.strategies.begin(), run.strategies.end());
    run.strategies.erase(rest, run.strategies.end());
  }
  request.forecast.max_context = value<int>(settings, "context");
  request.forecast.num_samples = value<std::optional<int>>(settings, "samples").value_or(0);
  request.forecast.point = parse_point(value<std::string>(settings, "point"));
  request.forecast.seed = value<std::uint64_t>(settings, "seed");
  request.prove_no_lookahead = value<bool>(settings, "prove_no_lookahead");
  request.report = value<bool>(settings, "report");
  return request;
}

std::string text_of(std::span<const SymbolResult> results,
                    void (*write)(std::span<const SymbolResult>, const io::TextSink&)) {
  std::string text;
  write(results, [&text](std::string_view part) { text += part; });
  return text;
}

std::vector<backtest::Bars> bars_of(const Request& request) {
  if (request.tables.empty()) return backtest::read_all_bars(request.files);
  std::vector<backtest::Bars> all;
  for (const auto& [name, symbol, bytes] : request.tables) {
    io::MemorySource source(std::string_view(bytes.c_str(), bytes.size()));
    std::ranges::move(backtest::read_bars(source, name, symbol), std::back_inserter(all));
  }
  return all;
}

Answer run(const Request& request, const Engine& engine, std::function<bool()> cancelled) {
  Answer answer;
  const std::vector<backtest::Bars> bars = bars_of(request);
  const backtest::RunPlan plan = backtest::plan_run(bars, request.run);
  const std::vector<std::string> notes = backtest::notes_on(bars, request.run);
  answer.warnings = notes;
  for (const backtest::Skipped& item : plan.skipped) {
    answer.warnings.push_back(fmt::format("{}; skipped", item.reason));
  }
  if (plan.symbols.empty()) {
    fail(ErrorCode::corrupt_file, "no symbol could be run: {}",
         plan.skipped.empty() ? "there is no data" : plan.skipped.front().reason);
  }

  backtest::SourceOptions source{.transform = request.run.transform,
                                 .return_scale = request.run.return_scale,
                                 .lag = request.run.lag,
                                 .forecast = request.forecast};
  source.forecast.cancelled = std::move(cancelled);
  const std::string& folder = engine.options().cache.folder;
  backtest::ForecastCache cache =
      folder.empty()
          ? backtest::ForecastCache()
          : backtest::ForecastCache(folder + "/forecasts", backtest::cache_setting(engine, source));
  backtest::EngineSource forecasts(engine, source, cache);
  const std::vector<SymbolResult> results = backtest::evaluate(
      plan.symbols, backtest::forecast_all(plan.symbols, forecasts), request.run.strategies);
  if (!cache.problem().empty()) answer.warnings.push_back(cache.problem());

  // What the proof compares with must not come from the same memory.
  backtest::ForecastCache nothing;
  backtest::EngineSource again(engine, source, nothing);
  const backtest::LookaheadCheck lookahead = backtest::check_no_lookahead(
      results, again,
      request.prove_no_lookahead ? backtest::Checked::all : backtest::Checked::sample);
  if (!lookahead.passed()) {
    fail(ErrorCode::internal, "the no-lookahead proof failed: {}", lookahead.first_difference);
  }
  answer.lookahead = backtest::lookahead_sentence(lookahead);

  const io::EngineBlock block = io::describe(engine, engine.model().name, request.forecast.seed);
  answer.results = backtest::results_json(
      results, block, io::parse_json(request.settings, "settings"), backtest::data_files(bars));
  answer.forecasts = text_of(results, backtest::write_forecasts);
  answer.trades = text_of(results, backtest::write_trades);
  answer.returns = text_of(results, backtest::write_returns);
  if (request.report) {
    answer.report = backtest::report_html({.results = results,
                                           .engine = block,
                                           .options = request.run,
                                           .lookahead = lookahead,
                                           .notes = notes,
                                           .skipped = plan.skipped});
  }
  return answer;
}

nb::dict backtest_of(EngineHandle& handle, std::vector<std::string> files,
                     std::vector<Table> tables, const nb::dict& settings, std::string json) {
  Request request = request_of(settings, std::move(json));
  request.files = std::move(files);
  request.tables = std::move(tables);
  const Answer answer = handle.run([&](const Engine& engine, auto cancelled) {
    return run(request, engine, std::move(cancelled));
  });
  nb::dict result;
  result["results"] = answer.results;
  result["forecasts"] = answer.forecasts;
  result["trades"] = answer.trades;
  result["returns"] = answer.returns;
  result["report"] = answer.report;
  result["lookahead"] = answer.lookahead;
  result["warnings"] = answer.warnings;
  return result;
}

}  // namespace

void bind_backtest(nb::module_& module) {
  module.def("backtest", &backtest_of, nb::arg("engine"), nb::arg("files"), nb::arg("tables"),
             nb::arg("settings"), nb::arg("settings_json"),
             nb::sig("def backtest(engine: Engine, files: list[str], tables: list[tuple[str, str, "
                     "bytes]], settings: dict[str, typing.Any], settings_json: str) "
                     "-> dict[str, typing.Any]"));
}

}  // namespace toto::python
