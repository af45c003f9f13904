// `toto config`: what is in force and who said so; and the switches of `.env.compile`.
#include <cstdlib>
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
#include "cli/settings/settings.h"
#include "cli/settings/settings_file.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace toto::cli {
namespace {

struct ConfigFlags {
  std::vector<std::string> words;
  std::optional<std::string> file, json, samples, point, output_dir;
  CommonFlags common;

  std::string path() const { return file.value_or(".env.compile"); }
};

EnvFile read_env(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return EnvFile({});
  return EnvFile(io::read_file(path, kMaxSettingsBytes));
}

// What the shell will have, which is not what it has: a child cannot change its parent.
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
  // Only `disable` is for going back: whoever enables means an optimised mode.
  if (env.find("TOTO_DISABLE_COMPILE") == "0" && env.find("TOTO_COMPILE_MODE") == "reference" &&
      values.back().first != "TOTO_COMPILE_MODE") {
    print_warning(fmt::format(
        "{} sets TOTO_COMPILE_MODE=reference, which stays in force; `toto config mode default` "
        "turns the optimised modes on",
        path));
  }
  publish(flags.json, json.take(), text + fmt::format("in force after `source {}`\n", path));
  return 0;
}

int show(const ConfigFlags& flags) {
  const ConfigReport report = report_config(flags.common, flags.samples, flags.point);
  for (const std::string& warning : report.warnings) print_warning(warning);
  publish(flags.json, json_text(report), table_text(report));
  return 0;
}

int status(const ConfigFlags& flags) {
  const std::string path = flags.path();
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  const StatusReport report = report_status(read_env(path), path, exists);
  for (const std::string& warning : report.warnings) print_warning(warning);
  publish(flags.json, json_text(report), table_text(report));
  return 0;
}

// The common options given here hold for the check too. --mode does not: it runs in all of them.
int test(const ConfigFlags& flags) {
  std::vector<std::string> words = {"stress", "--mode", "production-check"};
  const auto pass = [&](const char* name, const std::optional<std::string>& value) {
    if (value) words.insert(words.end(), {name, *value});
  };
  if (flags.common.mode) {
    fail(ErrorCode::invalid_argument,
         "--mode is {}, but `toto config test` checks all modes; leave it out",
         quoted(*flags.common.mode));
  }
  pass("--model", flags.common.model);
  pass("--dtype", flags.common.dtype);
  pass("--threads", flags.common.threads);
  pass("--isa", flags.common.isa);
  pass("--seed", flags.common.seed);
  pass("--plan-cache-size", flags.common.plan_cache_size);
  pass("--cache-dir", flags.common.cache_dir);
  pass("--output-dir", flags.output_dir);
  pass("--json", flags.json);
  if (flags.common.no_cache) words.emplace_back("--no-cache");
  const std::string& file = settings_file().path();
  if (!file.empty()) words.insert(words.end(), {"--config", file});
  return run_command(words);
}

int config(const ConfigFlags& flags) {
  const std::vector<std::string>& words = flags.words;
  const std::string action = words.empty() ? "show" : words.front();
  const bool takes_mode = action == "mode";
  if (words.size() > (takes_mode ? 2u : 1u)) {
    fail(ErrorCode::invalid_argument, "config {}: {} is one word too many", action,
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
                   "show (default): every setting and who said so; enable, disable, mode M: write "
                   ".env.compile; status: what the file and the environment say; test: `toto "
                   "stress --mode production-check`",
                   false)
      .option("--file", "FILE", flags->file, "in place of .env.compile")
      .option("--json", "FILE", flags->json, "write the answer as JSON; - is stdout")
      .option("--samples", "N", flags->samples, "as in `toto forecast`, for show")
      .option("--point", "SPEC", flags->point, "as in `toto forecast`, for show")
      .option("--output-dir", "DIR", flags->output_dir, "of test: where its report goes");
  add_common_options(command, flags->common);
  command.note(kVariablesNote).run([flags] { return config(*flags); });
}

}  // namespace toto::cli
