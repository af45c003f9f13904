// `toto verify`: is the engine right? Exit code 0 only if every check held.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
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
  CommonFlags common;
};

// --modes, or --mode for those who are used to it; not the variables, which say how to run a
// forecast: a rollback in force is no reason to leave the other modes unverified.
std::vector<Mode> modes_of(const VerifyFlags& flags, DType dtype) {
  if (flags.modes && flags.common.mode) {
    fail(ErrorCode::invalid_argument, "--modes and --mode are both given; use --modes");
  }
  const auto choice =
      flags.modes ? find_choice(flags.modes, "--modes") : find_choice(flags.common.mode, "--mode");
  if (!choice || choice->text == "all") return validate::all_modes(dtype);
  std::vector<Mode> modes;
  for (const std::string& name : list_of(*choice)) {
    const Mode mode = parse_choice(Choice{name, choice->origin}, parse_mode);
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) modes.push_back(mode);
  }
  return modes;
}

validate::VerifyOptions options_of(const VerifyFlags& flags) {
  if (flags.common.no_kv_cache) {
    fail(ErrorCode::invalid_argument,
         "--no-kv-cache: verify runs the path with the cache and the one without it by itself; "
         "leave it out");
  }
  if (flags.golden_only && flags.goldens.empty()) {
    fail(ErrorCode::invalid_argument,
         "--golden-only needs --golden DIR: there is nothing to check");
  }
  const Settings settings = resolve_settings(flags.common, Modes::all);
  for (const std::string& warning : settings.warnings) print_warning(warning);
  validate::VerifyOptions options;
  options.goldens = flags.goldens;
  options.golden_only = flags.golden_only;
  options.engine = settings.engine;
  options.engine.use_kv_cache = true;  // whatever a config file says: both paths are run
  // Every instruction set is to pack for itself, from the model's own files.
  options.engine.cache.folder.clear();
  options.modes = modes_of(flags, settings.engine.dtype);
  options.seed = settings.seed;
  if (!flags.golden_only) options.model = locate_model(settings.model).folder;
  // Named in so many words, a model is what the goldens are for; a default or a variable is not.
  if (flags.common.model && !flags.goldens.empty()) {
    options.golden_model = locate_model(settings.model).folder;
  }
  return options;
}

int verify(const VerifyFlags& flags) {
  if (flags.report == "-") {
    fail(ErrorCode::invalid_argument, "--report is -, expected a file: stdout has the table");
  }
  check_outputs({}, {{"--json", flags.json}, {"--report", flags.report}});
  validate::VerifyOptions options = options_of(flags);
  validate::VerifyReport report;
  {
    const InterruptGuard guard;
    Progress progress("verify", "steps", flags.progress);
    options.cancelled = InterruptGuard::interrupted;
    options.progress = [&progress](int done, int total) {
      progress.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
    };
    report = validate::verify(options);
  }
  for (const std::string& warning : report.warnings) print_warning(warning);
  if (!report.trained) {
    print_warning(fmt::format(
        "the model {} is untrained: that its numbers are computed right does not make them "
        "forecasts",
        report.model));
  }
  if (flags.report) write_result(*flags.report, validate::markdown_text(report));
  publish(flags.json, validate::json_text(report), validate::table_text(report));
  return report.passed() ? 0 : 1;
}

}  // namespace

void add_verify(Arguments& arguments) {
  const auto flags = std::make_shared<VerifyFlags>();
  Command command = arguments.add_command(
      "verify", "is the engine right? against goldens and against reference mode",
      "toto verify --golden tests/golden --json verify.json --report verify.md");
  command
      .option("--golden", flags->goldens,
              "golden folders, or folders of them: what PyTorch answered in float32 and float64; "
              "--model names what is held to them in place of the model beside each")
      .flag("--golden-only", flags->golden_only, "check nothing but the goldens")
      .option("--modes", "LIST", flags->modes,
              "the modes to verify, comma-separated (default: all)")
      .option("--json", "FILE", flags->json, "write the checks as JSON; - is stdout")
      .option("--report", "FILE", flags->report, "write a readable report in Markdown")
      .flag("--progress", flags->progress, "print progress even if stderr is not a terminal");
  add_common_options(command, flags->common);
  command.run([flags] { return verify(*flags); });
}

}  // namespace toto::cli
