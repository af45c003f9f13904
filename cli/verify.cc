// `toto verify`: checks the engine. Exit code 0 only if every check passed.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/locate_model.h"
#include "cli/settings/settings.h"
#include "validate/verification.h"

namespace toto::cli {
namespace {

struct VerifyFlags {
  std::vector<std::string> goldens;
  bool golden_only = false;
  std::optional<std::string> modes, json, report;
  bool progress = false;
  Flags settings;
};

// --modes, or --mode, which other commands have. Not the variables: a rollback must not leave
// the other modes unverified.
std::vector<Mode> wanted_modes(const VerifyFlags& flags, DType dtype) {
  const auto mode = flags.settings.find("mode");
  if (flags.modes && mode) {
    fail(ErrorCode::invalid_argument, "--modes and --mode are both given; use --modes");
  }
  return modes_of(flags.modes ? *flags.modes : mode.value_or("all"),
                  flags.modes ? "--modes" : "--mode", dtype);
}

validate::VerifyOptions options_of(const VerifyFlags& flags) {
  if (flags.settings.given("no_kv_cache")) {
    fail(ErrorCode::invalid_argument,
         "--no-kv-cache: verify runs the path with the cache and the one without it by itself; "
         "leave it out");
  }
  if (flags.golden_only && flags.goldens.empty()) {
    fail(ErrorCode::invalid_argument,
         "--golden-only needs --golden DIR: there is nothing to check");
  }
  Flags common = flags.settings;
  common.set("mode", std::nullopt);
  const Settings settings = resolve_settings(common, {.modes = Modes::all});
  print_warnings(settings.warnings);
  validate::VerifyOptions options;
  options.goldens = flags.goldens;
  options.golden_only = flags.golden_only;
  options.engine = settings.engine;
  options.engine.use_kv_cache = true;  // whatever a config file says: both paths are run
  // Every instruction set packs the weights itself, from the model's own files.
  options.engine.cache.folder.clear();
  options.modes = wanted_modes(flags, settings.engine.dtype);
  options.seed = settings.seed;
  if (!flags.golden_only) options.model = locate_model(settings.model).folder;
  // A model named by its flag is compared with the goldens; a default or a variable is not.
  if (flags.settings.given("model") && !flags.goldens.empty()) {
    options.golden_model = locate_model(settings.model).folder;
  }
  return options;
}

int verify(const VerifyFlags& flags) {
  if (flags.report) check_report_name(*flags.report, {""});
  check_outputs({}, {{"--json", flags.json}, {"--report", flags.report}});
  const validate::VerifyReport report =
      run_with_progress("verify", "steps", flags.progress, options_of(flags), validate::verify);
  print_warnings(report.warnings);
  if (!report.trained) {
    print_warning(fmt::format(
        "the model {} is untrained: its numbers are computed correctly, but are not forecasts",
        report.model));
  }
  ResultFiles files;
  if (flags.report) files.add(*flags.report, validate::markdown_text(report));
  publish(files, flags.json, validate::json_text(report), validate::table_text(report));
  return report.passed() ? 0 : 1;
}

}  // namespace

void add_verify(Arguments& arguments) {
  const auto flags = std::make_shared<VerifyFlags>();
  Command command = arguments.add_command(
      "verify", "check the engine against goldens and against reference mode",
      "toto verify --golden tests/golden --json verify.json --report verify.md");
  command
      .option("--golden", flags->goldens,
              "golden folders, or folders of them: PyTorch's answers in float32 and float64; "
              "--model compares another model with them than the one next to each")
      .flag("--golden-only", flags->golden_only, "check nothing but the goldens")
      .option("--modes", "LIST", flags->modes,
              "the modes to verify, comma-separated (default: all)")
      .json(flags->json, "write the checks as JSON")
      .option("--report", "FILE", flags->report, "write a readable report in Markdown")
      .progress(flags->progress);
  add_common_options(command, flags->settings);
  command.run([flags] { return verify(*flags); });
}

}  // namespace toto::cli
