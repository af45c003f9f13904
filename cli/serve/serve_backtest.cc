#include "cli/serve/serve_backtest.h"

#include <optional>
#include <set>
#include <span>
#include <utility>

#include "backtest/backtest_run.h"
#include "backtest/signal.h"
#include "base/error.h"
#include "base/text.h"
#include "server/request_fields.h"

namespace toto::cli {
namespace {

tables::BarFiles read_symbols(const io::Json& value) {
  const server::Fields check(value, "csv");
  tables::BarFiles all;
  std::set<std::string> symbols;
  for (const io::Json::Member& member : value.object) {
    server::check_name(member.first, "a symbol of csv");
    const std::string text = server::text_of(member.second, check.where(member.first));
    io::MemorySource source(text);
    const std::size_t before = all.bars.size();
    tables::add_bars(source, check.where(member.first), member.first, all);
    for (tables::Bars& bars : std::span(all.bars).subspan(before)) {
      if (!symbols.insert(bars.symbol).second) {
        fail(ErrorCode::invalid_argument, "{} has the symbol {}, which csv has already",
             check.where(member.first), quoted(bars.symbol));
      }
      bars.file = member.first;  // results use the names of the request
    }
  }
  tables::require_bars(all);
  if (all.bars.empty()) {
    fail(ErrorCode::invalid_argument,
         "csv has no symbol, expected {{\"AAPL\": \"date,open,...\"}}");
  }
  return all;
}

enum class Job { backtest, signal };

std::string shown(const io::Json& value) {
  return value.kind == io::Json::Kind::string ? value.string : io::described(value);
}

// The settings of the request on top of the engine that runs already. Only the seed may differ.
backtest::BacktestSpec read_settings(const io::Json* value, const server::ActiveEngine& active,
                                     std::uint64_t seed, Job job) {
  backtest::BacktestSpec running;
  running.set_engine(active.name, active.engine->options());
  running.seed = seed;
  if (value == nullptr) return running;
  const auto given = backtest::settings_of(*value, "settings", ErrorCode::invalid_argument);
  if (job == Job::signal) backtest::require_signal_settings(given);
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

struct ReadBody {
  tables::BarFiles data;
  backtest::BacktestSpec spec;
};

ReadBody read_body(const io::Json& body, const server::ActiveEngine& active, std::uint64_t seed,
                   Job job) {
  server::Fields fields(body, "");
  ReadBody read{read_symbols(fields.need("csv")),
                read_settings(fields.take("settings"), active, seed, job)};
  fields.finish();
  read.spec.data.clear();
  for (const tables::Bars& symbol : read.data.bars) read.spec.data.push_back(symbol.symbol);
  return read;
}

}  // namespace

server::BacktestFiles serve_backtest(const io::Json& body, const server::ActiveEngine& active,
                                     std::uint64_t seed, const std::function<bool()>& cancelled) {
  auto [data, spec] = read_body(body, active, seed, Job::backtest);
  std::optional<tables::Bars> benchmark = backtest::take_benchmark(spec, data);
  if (benchmark) std::erase(spec.data, benchmark->symbol);
  auto prepared = backtest::prepare(std::move(spec), std::move(data));
  prepared.benchmark = std::move(benchmark);
  prepared.require_symbols();
  backtest::BacktestRun run =
      backtest::run(prepared, *active.engine, active.name, {.cancelled = cancelled});
  run.require_proof();
  return {std::move(run.results_json), std::move(run.report_html), run.num_forecasts};
}

server::SignalAnswer serve_signal(const io::Json& body, const server::ActiveEngine& active,
                                  std::uint64_t seed, const std::function<bool()>& cancelled) {
  auto [data, spec] = read_body(body, active, seed, Job::signal);
  const auto prepared = backtest::prepare_signal(std::move(spec), std::move(data));
  prepared.require_symbols();
  backtest::SignalRun run =
      backtest::run_signal(prepared, *active.engine, active.name, {.cancelled = cancelled});
  return {std::move(run.json), run.num_forecasts};
}

}  // namespace toto::cli
