// `toto config`: every setting with its origin, and the switches of `.env.compile`.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings/config_report.h"
#include "cli/settings/env_file.h"
#include "cli/settings/setting_table.h"
#include "cli/settings/settings.h"
#include "cli/settings/settings_file.h"
#include "cli/stress.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace toto::cli {
namespace {

struct ConfigFlags {
  std::vector<std::string> words;
  std::optional<std::string> file, json, output_dir;
  Flags settings;

  std::string path() const { return file.value_or(".env.compile"); }
};

EnvFile read_env(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return EnvFile({});
  return EnvFile(io::read_file(path, kMaxSettingsBytes));
}

// The shell has them only after `source`: a child cannot change its parent.
int write_switches(const ConfigFlags& flags,
                   const std::vector<std::pair<std::string_view, std::string_view>>& values) {
  const std::string path = flags.path();
  check_writable(path);
  EnvFile env = read_env(path);
  io::JsonWriter json;
  json.begin_object().field("file", path).key("written").begin_object();
  std::string text = fmt::format("{}:\n", path);
  for (const auto& [name, value] : values) {
    env.set(name, value);
    json.field(name, value);
    text += fmt::format("  export {}={}\n", name, value);
  }
  io::write_file_atomically(path, env.text());
  json.end_object().end_object();
  // Only `disable` rolls back: `enable` is meant to select an optimised mode.
  if (env.find("TOTO_DISABLE_COMPILE") == "0" && env.find("TOTO_COMPILE_MODE") == "reference" &&
      values.back().first != "TOTO_COMPILE_MODE") {
    print_warning(fmt::format(
        "{} sets TOTO_COMPILE_MODE=reference, which stays active; `toto config mode default` "
        "turns the optimised modes on",
        path));
  }
  publish(flags.json, json.take(), text + fmt::format("active after `source {}`\n", path));
  return 0;
}

int show(const ConfigFlags& flags) {
  const ConfigReport report = report_config(flags.settings);
  print_warnings(report.warnings);
  publish(flags.json, json_text(report), table_text(report));
  return 0;
}

int status(const ConfigFlags& flags) {
  const std::string path = flags.path();
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  const StatusReport report = report_status(read_env(path), path, exists);
  print_warnings(report.warnings);
  publish(flags.json, json_text(report), table_text(report));
  return 0;
}

// The production check, with the settings given here but the mode: it runs in all of them.
int test(const ConfigFlags& flags) {
  if (const auto mode = flags.settings.find("mode")) {
    fail(ErrorCode::invalid_argument,
         "--mode is {}, but `toto config test` checks all modes; leave it out", quoted(*mode));
  }
  return run_stress({.level = validate::StressLevel::production_check,
                     .output_dir = flags.output_dir.value_or("."),
                     .json = flags.json,
                     .settings = flags.settings});
}

int config(const ConfigFlags& flags) {
  const std::vector<std::string>& words = flags.words;
  const std::string action = words.empty() ? "show" : words.front();
  const bool takes_mode = action == "mode";
  if (words.size() > (takes_mode ? 2u : 1u)) {
    fail(ErrorCode::invalid_argument, "config {}: unexpected argument {}", action,
         quoted(words[takes_mode ? 2 : 1]));
  }
  if (flags.json) check_outputs({}, {{"--json", flags.json}});
  if (action == "show") return show(flags);
  if (action == "status") return status(flags);
  if (action == "test") return test(flags);
  if (action == "disable") return write_switches(flags, {{"TOTO_DISABLE_COMPILE", "1"}});
  if (action == "enable") {
    return write_switches(flags, {{"TOTO_DISABLE_COMPILE", "0"}, {"TOTO_COMPILE", "1"}});
  }
  if (takes_mode) {
    if (words.size() < 2) {
      fail(ErrorCode::invalid_argument,
           "config mode: the mode is missing, expected reference, default, reduce-overhead or "
           "max-autotune");
    }
    const Mode mode = parse_choice(Choice{words[1], "config mode"}, parse_mode);
    return write_switches(flags, {{"TOTO_DISABLE_COMPILE", "0"},
                                  {"TOTO_COMPILE", "1"},
                                  {"TOTO_COMPILE_MODE", name_of(mode)}});
  }
  constexpr std::string_view kActions[] = {"show", "enable", "disable", "mode", "status", "test"};
  fail(ErrorCode::invalid_argument, "config {}: no such action; expected {}{}", quoted(action),
       fmt::join(kActions, ", "), did_you_mean(action, kActions));
}

}  // namespace

void add_config(Arguments& arguments) {
  const auto flags = std::make_shared<ConfigFlags>();
  Command command = arguments.add_command(
      "config", "show, enable, disable, mode M, status, test",
      "toto config show\n  toto config disable && source .env.compile    # roll back");
  command
      .positionals("ACTION", flags->words,
                   "show (default): every setting and its origin; enable, disable, mode M: write "
                   ".env.compile; status: the switches in that file and in the environment; test: "
                   "`toto stress --mode production-check`",
                   false)
      .option("--file", "FILE", flags->file, "use this file instead of .env.compile")
      .json(flags->json, "write the answer as JSON")
      .option("--output-dir", "DIR", flags->output_dir, "folder of the report of test");
  for (const settings::Setting* setting : all_settings()) {
    const bool has_flag = (setting->doors & settings::kFlag) != 0;
    if (has_flag && setting->section.empty()) flags->settings.add(command, *setting);
  }
  command.note(variables_note()).run([flags] { return config(*flags); });
}

}  // namespace toto::cli
