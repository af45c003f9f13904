#include "cli/backtest/backtest_request.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/settings/setting_table.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

using backtest::GivenSetting;
using backtest::GivenSettings;
using backtest::SpecField;
using io::Json;

constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 20;  // of a file of settings

GivenSettings given_flags(const BacktestFlags& flags) {
  GivenSettings given;
  for (const SpecField& field : backtest::spec_fields()) {
    if (field.name == "data" && !flags.data.empty()) {
      Json names = io::json_names();
      for (const std::string& path : flags.data) names.array.push_back(io::json_text(path));
      given.push_back({&field, std::move(names), "DATA"});
    } else if (const auto text = flags.settings.find(field.name); text && !field.of_engine) {
      given.push_back({&field, io::json_text(*text), field.flag()});
    }
  }
  return given;
}

// From a variable or the config file, which have some settings of a backtest too.
std::optional<Choice> find_elsewhere(const SpecField& field) {
  std::vector<std::string_view> names = {field.name};
  if (field.name == "mode") names = {"disable_compile", "compile", "mode"};
  for (const std::string_view name : names) {
    const settings::Setting* setting = find_setting(name);
    if (setting == nullptr) continue;
    if (auto choice = find_choice({}, *setting)) return choice;
  }
  return {};
}

GivenSettings given_elsewhere() {
  GivenSettings given;
  for (const SpecField& field : backtest::spec_fields()) {
    if (field.of_engine) continue;  // resolve_settings reads them
    if (const auto choice = find_elsewhere(field)) {
      given.push_back({&field, io::json_text(choice->text), choice->origin});
    }
  }
  return given;
}

// ----------------------------------------------------------------------------------------- files

// `name = value` lines or a JSON object, maybe as the "settings" of another one. Without the
// settings that variables or the config file have: those win.
GivenSettings read_settings_file(const std::string& path) {
  const std::string text = io::read_file(path, kMaxRequestBytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  GivenSettings given;
  if (first == std::string::npos || text[first] != '{') {
    given = backtest::settings_of_lines(text, path);
  } else {
    const Json json = io::parse_json(text, path);
    const Json* inner = json.find("settings");
    const bool wrapped = inner != nullptr && inner->kind == Json::Kind::object;
    given = backtest::settings_of(wrapped ? *inner : json, path, ErrorCode::corrupt_file);
  }
  std::erase_if(given,
                [](const GivenSetting& item) { return find_elsewhere(*item.field).has_value(); });
  return given;
}

GivenSettings read_earlier_run(const std::string& path, const BacktestFlags& flags,
                               BacktestRequest& request) {
  const Json results = io::parse_json(io::read_file(path, kMaxRequestBytes), path);
  const Json* settings = results.find("settings");
  if (settings == nullptr || settings->kind != Json::Kind::object) {
    fail(ErrorCode::corrupt_file,
         "{}: has no \"settings\" object, expected the results.json of a backtest", path);
  }
  if (flags.data.empty()) request.earlier_data = backtest::read_data_files(results, path);
  request.earlier_results = path;
  return backtest::settings_of(*settings, path, ErrorCode::corrupt_file);
}

// The flags of the engine, and where they are not given, what the files say about it.
Flags engine_flags(Flags flags, const GivenSettings& given, const backtest::BacktestSpec& spec) {
  for (const auto& [field, value, origin, code] : given) {
    const Json stored = field->get(spec);
    if (!field->of_engine || flags.given(field->name) || stored.kind == Json::Kind::null) continue;
    flags.set(field->name, text_of(*field, stored));
  }
  return flags;
}

std::string names_of(const std::vector<backtest::SkippedSymbol>& skipped) {
  std::string names;
  for (const auto& item : skipped) names += (names.empty() ? "" : ", ") + item.symbol;
  return names;
}

constexpr std::string_view kDataHelp =
    "CSV files of bars (date, open, high, low, close), or folders of them";

}  // namespace

void add_signal_options(Command& command, BacktestFlags& flags) {
  command.positionals("DATA", flags.data, std::string(kDataHelp), false);
  std::vector<SpecField> fields(backtest::spec_fields().begin(), backtest::spec_fields().end());
  std::erase_if(fields, [](const SpecField& f) { return !backtest::is_of_signal(f.name); });
  flags.settings.add_all(command, fields);
  command
      .option("--settings", "FILE", flags.settings_file,
              "settings of a backtest from a file; those a signal does not have are skipped")
      .json(flags.json, "also write the signal as JSON here")
      .progress(flags.progress);
  add_common_options(command, flags.settings);
  command.note(variables_note());
}

void add_backtest_options(Command& command, BacktestFlags& flags) {
  command.positionals("DATA", flags.data, std::string(kDataHelp) + "; or `compare A.json B.json`",
                      false);
  flags.settings.add_all(command, backtest::spec_fields());
  command
      .flag("--no-prefix-reuse", flags.no_prefix_reuse,
            "compute every context from its beginning; slower, the same bits")
      .option("--settings", "FILE", flags.settings_file,
              "settings from a file, `name = value` lines or JSON; flags and variables win over it")
      .option("--from-results", "FILE", flags.from_results,
              "take the settings of an earlier results.json; flags win over it")
      .option("--output-dir", "DIR", flags.output_dir, "output folder (default backtest-out)")
      .json(flags.json, "also write results.json here")
      .progress(flags.progress);
  add_common_options(command, flags.settings);
  command.note(variables_note());
}

BacktestRequest make_backtest_request(const BacktestFlags& flags, std::string_view command) {
  BacktestRequest request;
  GivenSettings given = given_flags(flags);
  // A run that is repeated does not look at the environment: a setting it leaves open had its
  // default.
  if (!flags.from_results) add_lower(given, given_elsewhere());
  if (flags.settings_file) add_lower(given, read_settings_file(*flags.settings_file));
  if (flags.from_results) add_lower(given, read_earlier_run(*flags.from_results, flags, request));
  request.spec = backtest::read_spec(given);
  const std::vector<std::string>& data = request.spec.data;
  if (data.empty()) {
    fail(ErrorCode::invalid_argument,
         "DATA is required: files of bars, or folders of them; see `toto {} --help`", command);
  }
  if (std::find(data.begin(), data.end(), "-") != data.end()) {
    fail(ErrorCode::invalid_argument,
         "DATA is -, expected files or folders: the name of a file is its symbol");
  }
  if (flags.output_dir) request.output_dir = *flags.output_dir;
  request.json = flags.json;
  request.reuse_prefixes = !flags.no_prefix_reuse;
  request.progress = flags.progress;
  request.engine = resolve_available(engine_flags(flags.settings, given, request.spec));
  request.spec.set_engine(request.engine.model, request.engine.engine);
  request.spec.seed = request.engine.seed;
  return request;
}

std::vector<NamedPath> data_paths(const BacktestRequest& request) {
  std::vector<NamedPath> paths;
  for (const std::string& path : request.spec.data) {
    std::error_code ignored;  // reading it will say what is wrong with it
    if (!std::filesystem::is_directory(path, ignored)) paths.push_back({"DATA", path});
  }
  const std::string& benchmark = request.spec.benchmark;
  if (!benchmark.empty()) paths.push_back({"--benchmark", benchmark});
  return paths;
}

backtest::RunHooks hooks_of(const BacktestRequest& request) {
  backtest::RunHooks hooks{.cancelled = InterruptGuard::interrupted,
                           .reuse_prefixes = request.reuse_prefixes};
  hooks.progress = [&request](std::string_view job, std::string_view unit) {
    const auto progress =
        std::make_shared<Progress>(std::string(job), std::string(unit), request.progress);
    return [progress](std::size_t done, std::size_t total) { progress->update(done, total); };
  };
  if (!request.engine.no_cache) hooks.cache_folder = request.engine.cache_dir;
  return hooks;
}

void require_all_symbols(const backtest::RunPlan& plan) {
  if (plan.skipped.empty()) return;
  fail(ErrorCode::corrupt_file, "skipped, the rest was written: {}; the warnings say why",
       names_of(plan.skipped));
}

}  // namespace toto::cli
