// `toto stress`: a thin layer above validate::stress. Exit code 0 only if every limit holds.
#include "cli/stress.h"

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/held_out_files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

struct StressFlags {
  std::optional<std::string> level, output_dir, column;
  StressOptions options;
};

int stress(const StressFlags& flags) {
  StressOptions options = flags.options;
  if (flags.level) {
    options.level = parse_choice({*flags.level, "--mode"}, validate::parse_stress_level);
  }
  if (flags.output_dir) options.output_dir = *flags.output_dir;
  if (flags.column) options.column = *flags.column;
  return run_stress(options);
}

validate::StressOptions engine_options_of(const StressOptions& options) {
  const Settings settings = resolve_settings(options.settings, {.modes = Modes::all});
  print_warnings(settings.warnings);
  validate::StressOptions wanted;
  wanted.level = options.level;
  wanted.engine = settings.engine;
  wanted.seed = settings.seed;
  wanted.model = locate_model(settings.model).folder;
  return wanted;
}

// Fails early where permissions alone do not tell (a folder of /proc, a full disk): the run takes
// minutes. Leaves nothing behind.
void try_writing(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<fs::path> made;
  std::error_code error;
  for (fs::path folder = fs::absolute(path).parent_path(); !fs::exists(folder, error);
       folder = folder.parent_path()) {
    made.push_back(folder);
  }
  {
    const io::AtomicFile probe(path);
  }
  for (const fs::path& folder : made) fs::remove(folder, error);
}

}  // namespace

int run_stress(const StressOptions& options) {
  const std::string_view level = validate::name_of(options.level);
  const std::string results =
      fmt::format("{}/compile_stress_results_{}.json", options.output_dir, level);
  const std::string readable =
      fmt::format("{}/compile_stress_report_{}.md", options.output_dir, level);
  std::vector<NamedPath> inputs;
  inputs.reserve(options.data.size());
  for (const std::string& file : options.data) inputs.push_back({"--data", file});
  check_outputs(
      inputs, {{"the results file", results}, {"the report", readable}, {"--json", options.json}});
  validate::StressOptions wanted = engine_options_of(options);
  wanted.symbols =
      read_symbols(options.data.empty() ? bundled_symbol_files() : options.data, options.column);

  try_writing(results);
  const validate::StressReport report = run_with_progress(
      fmt::format("stress {}", level), "steps", options.progress, wanted, validate::stress);
  print_warnings(report.warnings);
  const std::string json = validate::json_text(report);
  ResultFiles files;
  files.add(readable, validate::markdown_text(report));
  files.add(results, json);
  publish(files, options.json, json, validate::table_text(report));
  return report.passed() ? 0 : 1;
}

void add_stress(Arguments& arguments) {
  const auto flags = std::make_shared<StressFlags>();
  Command command = arguments.add_command(
      "stress", "every mode under a mixed load: accuracy, latency, memory, replans",
      "toto stress --mode quick --output-dir stress-out");
  command
      .option("--mode", "M", flags->level,
              "quick, full or production-check: 3, 10 or 20 iterations (default quick)")
      .option("--output-dir", "DIR", flags->output_dir,
              "where compile_stress_results_M.json and compile_stress_report_M.md go (default .)")
      .option("--data", flags->options.data,
              "files of real values to judge forecasts by (default: the five example symbols)")
      .option("--column", "C", flags->column, "the column to forecast (default close)")
      .json(flags->options.json, "also write the results here")
      .progress(flags->options.progress);
  add_common_options(command, flags->options.settings, Modes::all);
  command.note(
      "Exit code 1 if a limit is broken: MAE more than 5 % from reference, more than 10 replans,\n"
      "slower than 0.8 times reference, memory that grows, numbers that differ between equal\n"
      "calls. Warnings begin at half of a limit. docs/correctness.md has them all.");
  command.run([flags] { return stress(*flags); });
}

}  // namespace toto::cli
