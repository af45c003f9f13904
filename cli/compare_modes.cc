// `toto compare-modes`: the modes side by side on real data. Exit code 1 if they do not agree, if
// one is slow, or if the forecasts do not come from the network.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/held_out_files.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/settings.h"
#include "validate/mode_comparison.h"

namespace toto::cli {
namespace {

struct CompareModesFlags {
  std::vector<std::string> data, reports;
  std::optional<std::string> column, context, horizon, samples, runs, modes, json;
  bool exact = false;
  bool progress = false;
  CommonFlags common;
};

constexpr int kMostRuns = 100'000, kMostContext = 1'000'000;

validate::CompareOptions options_of(const CompareModesFlags& flags) {
  validate::CompareOptions options;
  const auto number = [](const std::optional<std::string>& flag, std::string_view name, int most,
                         int& value) {
    if (const auto choice = find_choice(flag, name)) value = whole_number(*choice, 1, most);
  };
  number(flags.context, "--context", kMostContext, options.context);
  number(flags.horizon, "--horizon", kMaxHorizon, options.horizon);
  number(flags.runs, "--runs", kMostRuns, options.runs);
  if (const auto samples = find_choice(flags.samples, "--samples", {"TOTO_NUM_SAMPLES"})) {
    options.samples = whole_number(*samples, 1, kMaxSamples);
  }
  if (flags.exact && flags.samples) {
    fail(ErrorCode::invalid_argument, "--samples is {} but --exact draws none; leave one out",
         options.samples);
  }
  if (flags.exact) options.samples = 0;
  const Settings settings = resolve_settings(flags.common, Modes::all);
  for (const std::string& warning : settings.warnings) print_warning(warning);
  options.engine = settings.engine;
  options.seed = settings.seed;
  options.modes = validate::all_modes(settings.engine.dtype);
  if (const auto modes = find_choice(flags.modes, "--modes"); modes && modes->text != "all") {
    options.modes.clear();
    for (const std::string& name : list_of(*modes)) {
      options.modes.push_back(parse_choice(Choice{name, modes->origin}, parse_mode));
    }
  }
  options.model = locate_model(settings.model).folder;
  return options;
}

bool is_page(const std::string& path) { return path.ends_with(".html"); }

void check_files(const CompareModesFlags& flags) {
  if (flags.data.empty()) {
    fail(ErrorCode::invalid_argument,
         "--data is missing, expected files of real prices, such as examples/data/BTCUSD.csv");
  }
  std::vector<NamedPath> inputs, outputs = {{"--json", flags.json}};
  for (const std::string& file : flags.data) inputs.push_back({"--data", file});
  for (const std::string& file : flags.reports) {
    if (!is_page(file) && !file.ends_with(".md")) {
      fail(ErrorCode::invalid_argument, "--report is {}, expected a name that ends in .md or .html",
           quoted(file));
    }
    outputs.push_back({"--report", file});
  }
  check_outputs(inputs, outputs);
}

int compare(const CompareModesFlags& flags) {
  check_files(flags);
  validate::CompareOptions options = options_of(flags);
  options.symbols = read_symbols(flags.data, flags.column.value_or("close"));
  validate::CompareReport report;
  {
    const InterruptGuard guard;
    Progress progress("compare-modes", "forecasts", flags.progress);
    options.cancelled = InterruptGuard::interrupted;
    options.progress = [&progress](int done, int total) {
      progress.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
    };
    report = validate::compare_modes(options);
  }
  for (const std::string& warning : report.warnings) print_warning(warning);
  for (const std::string& file : flags.reports) {
    write_result(file,
                 is_page(file) ? validate::page_html(report) : validate::markdown_text(report));
  }
  publish(flags.json, validate::json_text(report), validate::table_text(report));
  return report.passed() ? 0 : 1;
}

}  // namespace

void add_compare_modes(Arguments& arguments) {
  const auto flags = std::make_shared<CompareModesFlags>();
  Command command = arguments.add_command(
      "compare-modes", "modes side by side on real data: time, accuracy, deviation, memory",
      "toto compare-modes --data examples/data/BTCUSD.csv --runs 20 --report modes.html");
  command.option("--data", flags->data, "files as `toto forecast` takes them, each a symbol")
      .option("--column", "C", flags->column, "the column to forecast (default close)")
      .option("--context", "N", flags->context, "points of history (default 512)")
      .option("--horizon", "N", flags->horizon, "steps ahead (default 1)")
      .option("--samples", "N", flags->samples, "sampled paths (default 128)")
      .flag("--exact", flags->exact, "draw no samples as far as one patch reaches")
      .option("--runs", "N", flags->runs,
              "forecasts of each symbol and mode, from the last N windows (default 20)")
      .option("--modes", "LIST", flags->modes,
              "comma-separated (default: all); reference is always run")
      .option("--report", flags->reports,
              "files ending in .md or .html: a report, a page with charts")
      .option("--json", "FILE", flags->json, "every figure as JSON; - is stdout")
      .flag("--progress", flags->progress, "show progress even if stderr is no terminal");
  add_common_options(command, flags->common, Modes::all);
  command.run([flags] { return compare(*flags); });
}

}  // namespace toto::cli
