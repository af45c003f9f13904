// `toto forecast`: read, forecast, write, a group of series at a time. The request is checked
// before anything is read, the input before the model is loaded.
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/forecast/forecast_inputs.h"
#include "cli/forecast/forecast_outputs.h"
#include "cli/forecast/forecast_run.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace toto::cli {
namespace {

int forecast(const ForecastFlags& flags) {
  ForecastRequest request = make_forecast_request(flags);
  const Settings settings = resolve_available(flags.settings);
  request.options.seed = settings.seed;
  print_warnings(request.warnings);

  ForecastRemarks remarks(request);
  std::vector<ForecastInput> inputs = check_inputs(request, remarks);
  print_warnings(remarks.about_data());
  std::size_t num_jobs = 0;
  for (const ForecastInput& input : inputs) num_jobs += input.num_jobs();

  const InterruptGuard guard;
  const LoadedEngine loaded = load_engine(settings);
  print_warnings(loaded.warnings);
  if (request.options.decode == Decode::mean && !loaded.engine.model().facts.can_sample) {
    fail(ErrorCode::invalid_argument,
         "--decode mean feeds back means, but {} predicts quantiles and feeds back medians; leave "
         "it out",
         loaded.engine.model().name);
  }
  print_warnings(remarks.about_model(loaded.engine.model()));
  if (const auto remark = remarks.simulated(loaded.engine.model())) print_line("note: " + *remark);
  ForecastOutputs outputs(request, loaded, inputs.front().heading());
  Timings timings;
  {
    ForecastRun run(request, loaded.engine, num_jobs,
                    [&outputs](const ForecastJob& job, const Forecast& forecast) {
                      outputs.add(job, forecast);
                    });
    for (ForecastInput& input : inputs) {
      input.read_jobs([&run](ForecastJob job) { run.add(std::move(job)); });
    }
    run.finish();
    timings = run.timings();
  }  // its progress bar is gone
  outputs.commit(timings);
  return 0;
}

}  // namespace

void add_forecast(Arguments& arguments) {
  const auto flags = std::make_shared<ForecastFlags>();
  Command command =
      arguments.add_command("forecast", "forecast every series in files and folders",
                            "toto forecast examples/data/AAPL.csv --horizon 64 --plot aapl.html");
  add_forecast_options(command, *flags);
  command.run([flags] { return forecast(*flags); });
}

}  // namespace toto::cli
