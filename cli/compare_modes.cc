// `toto compare-modes`: the modes side by side on real data. Exit code 1 if they do not agree, if
// one is slow, or if the forecasts do not come from the network.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/held_out_files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/settings.h"
#include "validate/mode_comparison.h"

namespace toto::cli {
namespace {

struct CompareModesFlags {
  std::vector<std::string> data, reports;
  std::optional<std::string> column, modes, json;
  bool exact = false;
  bool progress = false;
  Flags settings;
};

using Compare = validate::CompareOptions;
using CompareRows = settings::Rows<Compare>;

const std::vector<settings::Field<Compare>>& compare_rows() {
  static const std::vector<settings::Field<Compare>> rows = command_table<Compare>(
      {CompareRows::number<&Compare::context>("context", 1, 1'000'000)
           .words("N", "points of history"),
       CompareRows::number<&Compare::horizon>("horizon", 1, kMaxHorizon).words("N", "steps ahead"),
       CompareRows::number<&Compare::samples>("samples", 1, kMaxSamples)
           .words("N", "sampled paths")
           .at(settings::kFile)
           .from(settings::find(settings::forecast_fields(), "samples")->variables),
       CompareRows::number<&Compare::runs>("runs", 1, 100'000)
           .words("N", "forecasts of each symbol and mode, from the last N windows")});
  return rows;
}

Compare options_of(const CompareModesFlags& flags) {
  Compare options;
  read_settings(flags.settings, compare_rows(), options);
  if (flags.exact && flags.settings.given("samples")) {
    fail(ErrorCode::invalid_argument, "--samples is {} but --exact draws none; leave one out",
         options.samples);
  }
  if (flags.exact) options.samples = 0;
  const Settings settings = resolve_settings(flags.settings, {.modes = Modes::all});
  print_warnings(settings.warnings);
  options.engine = settings.engine;
  options.seed = settings.seed;
  options.modes = modes_of(flags.modes.value_or("all"), "--modes", settings.engine.dtype);
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
    check_report_name(file, {".md", ".html"});
    outputs.push_back({"--report", file});
  }
  check_outputs(inputs, outputs);
}

int compare(const CompareModesFlags& flags) {
  check_files(flags);
  Compare options = options_of(flags);
  options.symbols = read_symbols(flags.data, flags.column.value_or("close"));
  const validate::CompareReport report = run_with_progress(
      "compare-modes", "forecasts", flags.progress, options, validate::compare_modes);
  print_warnings(report.warnings);
  ResultFiles files;
  for (const std::string& file : flags.reports) {
    files.add(file, is_page(file) ? validate::page_html(report) : validate::markdown_text(report));
  }
  publish(files, flags.json, validate::json_text(report), validate::table_text(report));
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
      .flag("--exact", flags->exact, "draw no samples as far as one patch reaches")
      .option("--modes", "LIST", flags->modes,
              "comma-separated (default: all); reference is always run")
      .option("--report", flags->reports,
              "files ending in .md or .html: a report, a page with charts")
      .json(flags->json, "every figure as JSON")
      .progress(flags->progress);
  flags->settings.add_all(command, compare_rows());
  add_common_options(command, flags->settings, Modes::all);
  command.run([flags] { return compare(*flags); });
}

}  // namespace toto::cli
