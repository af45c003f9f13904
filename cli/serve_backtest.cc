#include "serve_backtest.h"

#include <set>
#include <utility>

#include "backtest/lookahead.h"
#include "backtest/outputs.h"
#include "backtest/report.h"
#include "backtest/run.h"
#include "backtest_request.h"
#include "backtest_settings.h"
#include "base/error.h"
#include "server/plan.h"

namespace toto::cli {
namespace {

using backtest::SymbolResult;

std::vector<backtest::Bars> read_symbols(const io::Json& value) {
  const server::Fields check(value, "csv");
  std::vector<backtest::Bars> all;
  std::set<std::string> symbols;
  for (const io::Json::Member& member : value.object) {
    const std::string text = server::text_of(member.second, check.where(member.first));
    io::MemorySource source(text);
    for (backtest::Bars& bars :
         backtest::read_bars(source, check.where(member.first), member.first)) {
      if (!symbols.insert(bars.symbol).second) {
        fail(ErrorCode::invalid_argument, "{} has the symbol {}, which csv has already",
             check.where(member.first), io::quoted(bars.symbol));
      }
      bars.file = member.first;  // there is none: results name what the request did
      all.push_back(std::move(bars));
    }
  }
  if (all.empty()) {
    fail(ErrorCode::invalid_argument,
         "csv has no symbol, expected {{\"AAPL\": \"date,open,...\"}}");
  }
  return all;
}

// What the service decides: the engine runs already.
BacktestRequest read_request(const io::Json* value, const std::vector<backtest::Bars>& bars,
                             const server::ActiveEngine& active, const Settings& settings) {
  BacktestFlags flags;
  for (const backtest::Bars& symbol : bars) flags.data.push_back(symbol.symbol);
  SettingsFiles files;
  if (value != nullptr) files.take_request(flags, *value);
  const EngineOptions& engine = active.engine->options();
  const auto only = [](std::optional<std::string>& flag, const char* name, std::string now) {
    if (flag && *flag != now) {
      fail(ErrorCode::invalid_argument, "settings.{} is {}, but this server runs with {}", name,
           io::quoted(*flag), now);
    }
    flag = std::move(now);
  };
  only(flags.common.model, "model", active.name);
  only(flags.common.mode, "mode", std::string(name_of(engine.mode)));
  only(flags.common.dtype, "dtype", std::string(name_of(engine.dtype)));
  only(flags.common.isa, "isa", std::string(name_of(engine.isa)));
  only(flags.common.threads, "threads", fmt::format("{}", engine.threads));
  if (!flags.common.seed) flags.common.seed = fmt::format("{}", settings.seed);
  try {
    return make_backtest_request(flags);
  } catch (const Error& error) {
    files.explain(error);
    throw;
  }
}

// Target bars of one decision lag, forecast and traded.
std::vector<SymbolResult> walk(const backtest::RunPlan& plan, const BacktestRequest& request,
                               backtest::ForecastSource& source) {
  return backtest::evaluate(plan.symbols, backtest::forecast_all(plan.symbols, source),
                            request.run.strategies);
}

}  // namespace

server::BacktestFiles serve_backtest(const io::Json& body, const server::ActiveEngine& active,
                                     const Settings& settings,
                                     const std::function<bool()>& cancelled) {
  server::Fields fields(body, "");
  const std::vector<backtest::Bars> bars = read_symbols(fields.need("csv"));
  const BacktestRequest request = read_request(fields.take("settings"), bars, active, settings);
  fields.finish();
  const backtest::RunPlan plan = backtest::plan_run(bars, request.run);
  if (plan.symbols.empty()) {
    fail(ErrorCode::invalid_argument, "no symbol could be run: {}", plan.skipped.front().reason);
  }
  const std::vector<std::string> notes = backtest::notes_on(bars, request.run);
  backtest::SourceOptions options{.transform = request.run.transform,
                                  .return_scale = request.run.return_scale,
                                  .lag = request.run.lag,
                                  .forecast = request.forecast};
  options.forecast.cancelled = cancelled;
  backtest::ForecastCache cache;
  backtest::EngineSource source(*active.engine, options, cache);
  const std::vector<SymbolResult> results = walk(plan, request, source);
  backtest::ForecastCache fresh;  // a proof from a cache would prove nothing
  backtest::EngineSource again(*active.engine, options, fresh);
  const backtest::LookaheadCheck lookahead = backtest::check_no_lookahead(
      results, again,
      request.prove_no_lookahead ? backtest::Checked::all : backtest::Checked::sample, {});
  if (!lookahead.passed()) {
    fail(ErrorCode::internal, "the no-lookahead proof failed: {}", lookahead.first_difference);
  }
  const io::EngineBlock block = active.block(request.forecast.seed);
  const backtest::ReportInput report{.results = results,
                                     .engine = block,
                                     .options = request.run,
                                     .lookahead = lookahead,
                                     .notes = notes,
                                     .skipped = plan.skipped};
  return {backtest::results_json(results, block, request.settings, backtest::data_files(bars)),
          backtest::report_html(report), source.num_computed() + again.num_computed()};
}

}  // namespace toto::cli
