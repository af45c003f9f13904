// `toto signal`: the decision after the last bar, by the code and settings of the backtest.
#include "backtest/signal.h"

#include <memory>

#include "base/error.h"
#include "cli/backtest/backtest_request.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace toto::cli {
namespace {

int signal_command(const BacktestFlags& flags) {
  const BacktestRequest request = make_backtest_request(flags, "signal");
  check_outputs(data_paths(request), {{"--json", request.json}});
  const backtest::PreparedBacktest prepared =
      backtest::prepare_signal(request.spec, tables::read_all_bars(request.spec.data));
  print_warnings(prepared.warnings());
  prepared.require_symbols();
  const InterruptGuard guard;
  const LoadedEngine loaded = load_engine(request.engine);
  print_warnings(loaded.warnings);
  const backtest::SignalRun run =
      backtest::run_signal(prepared, loaded.engine, loaded.model.name, hooks_of(request));
  print_warnings(run.warnings);
  publish(request.json, run.json, backtest::signal_text(run.signals));
  require_all_symbols(prepared.plan);
  return 0;
}

}  // namespace

void add_signal(Arguments& arguments) {
  const auto flags = std::make_shared<BacktestFlags>();
  Command command = arguments.add_command(
      "signal", "the orders of each strategy for the coming bar, as the backtest would decide",
      "toto signal examples/data/AAPL.csv --strategies simple,maxdiff");
  add_signal_options(command, *flags);
  command.run([flags] { return signal_command(*flags); });
}

}  // namespace toto::cli
