#include "cli/serve/serve_backtest.h"

#include <set>
#include <utility>

#include "backtest/backtest_run.h"
#include "base/error.h"
#include "base/text.h"
#include "server/request_fields.h"

namespace toto::cli {
namespace {

std::vector<tables::Bars> read_symbols(const io::Json& value) {
  const server::Fields check(value, "csv");
  std::vector<tables::Bars> all;
  std::set<std::string> symbols;
  for (const io::Json::Member& member : value.object) {
    server::check_name(member.first, "a symbol of csv");
    const std::string text = server::text_of(member.second, check.where(member.first));
    io::MemorySource source(text);
    for (tables::Bars& bars : tables::read_bars(source, check.where(member.first), member.first)) {
      if (!symbols.insert(bars.symbol).second) {
        fail(ErrorCode::invalid_argument, "{} has the symbol {}, which csv has already",
             check.where(member.first), quoted(bars.symbol));
      }
      bars.file = member.first;  // results use the names of the request
      all.push_back(std::move(bars));
    }
  }
  if (all.empty()) {
    fail(ErrorCode::invalid_argument,
         "csv has no symbol, expected {{\"AAPL\": \"date,open,...\"}}");
  }
  return all;
}

std::string shown(const io::Json& value) {
  return value.kind == io::Json::Kind::string ? value.string : io::described(value);
}

// The settings of the request on top of the engine that runs already. Only the seed may differ.
backtest::BacktestSpec read_settings(const io::Json* value, const server::ActiveEngine& active,
                                     std::uint64_t seed) {
  backtest::BacktestSpec running;
  running.set_engine(active.name, active.engine->options());
  running.seed = seed;
  if (value == nullptr) return running;
  const auto given = backtest::settings_of(*value, "settings", ErrorCode::invalid_argument);
  backtest::BacktestSpec spec = backtest::read_spec(given, running);
  for (const backtest::GivenSetting& item : given) {
    if (!item.field->of_engine || item.field->name == "seed") continue;
    const std::string asked = shown(item.field->get(spec)), now = shown(item.field->get(running));
    if (asked == now) continue;
    fail(ErrorCode::invalid_argument, "settings.{} is {}, but this server runs with {}",
         item.field->name, quoted(asked), now);
  }
  return spec;
}

}  // namespace

server::BacktestFiles serve_backtest(const io::Json& body, const server::ActiveEngine& active,
                                     std::uint64_t seed, const std::function<bool()>& cancelled) {
  server::Fields fields(body, "");
  std::vector<tables::Bars> bars = read_symbols(fields.need("csv"));
  backtest::BacktestSpec spec = read_settings(fields.take("settings"), active, seed);
  fields.finish();
  spec.data.clear();
  for (const tables::Bars& symbol : bars) spec.data.push_back(symbol.symbol);
  const auto prepared = backtest::prepare(std::move(spec), std::move(bars));
  prepared.require_symbols();
  backtest::BacktestRun run =
      backtest::run(prepared, *active.engine, active.name, {.cancelled = cancelled});
  run.require_proof();
  return {std::move(run.results_json), std::move(run.report_html), run.num_forecasts};
}

}  // namespace toto::cli
