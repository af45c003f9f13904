#include "cli/backtest/backtest_request.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/output.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

using backtest::GivenSetting;
using backtest::GivenSettings;
using backtest::SpecField;
using io::Json;

constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 20;  // of a file of settings

// ----------------------------------------------------------------------------------------- flags

bool has_flag(const SpecField& field) { return !field.of_engine && field.name != "data"; }

bool is_on_by_default(const SpecField& field) {
  return field.get(backtest::BacktestSpec()).boolean;
}

// "--fee-bps"; of a switch that is on by default "--no-lag-test".
std::string flag_of(const SpecField& field) {
  const bool negated = field.type == SpecField::Type::toggle && is_on_by_default(field);
  std::string flag = (negated ? "--no-" : "--") + std::string(field.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

GivenSettings given_flags(const BacktestFlags& flags) {
  GivenSettings given;
  const auto fields = backtest::spec_fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == "data" && !flags.data.empty()) {
      Json names = io::json_names();
      for (const std::string& path : flags.data) names.array.push_back(io::json_text(path));
      given.push_back({&fields[i], std::move(names), "DATA"});
    } else if (const auto& value = flags.values[i]) {
      given.push_back({&fields[i], io::json_text(*value), flag_of(fields[i])});
    } else if (flags.switches[i]) {
      given.push_back(
          {&fields[i], io::json_toggle(!is_on_by_default(fields[i])), flag_of(fields[i])});
    }
  }
  return given;
}

// ------------------------------------------------------------------------- variables, config file

// Settings that variables and toto.conf have too. Those of the engine become common flags.
struct SharedSetting {
  std::string_view name;
  std::optional<std::string> CommonFlags::* flag;  // nullptr: not of the engine
  std::vector<const char*> variables;
};

std::span<const SharedSetting> shared_settings() {
  static const std::vector<SharedSetting> shared = {
      {"point", nullptr, {"TOTO_AGGREGATION_SPEC"}},
      {"samples", nullptr, {"TOTO_NUM_SAMPLES"}},
      {"model", &CommonFlags::model, {"TOTO_MODEL_ID"}},
      {"mode",
       &CommonFlags::mode,
       {"TOTO_DISABLE_COMPILE", "TOTO_COMPILE", "TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"}},
      {"dtype", &CommonFlags::dtype, {"TOTO_DTYPE"}},
      {"isa", &CommonFlags::isa, {"TOTO_ISA"}},
      {"threads", &CommonFlags::threads, {"TOTO_THREADS"}},
      {"seed", &CommonFlags::seed, {"TOTO_SEED"}}};
  return shared;
}

std::optional<Choice> find_elsewhere(const SharedSetting& setting) {
  for (const char* variable : setting.variables) {
    if (auto choice = find_choice({}, {}, {variable})) return choice;
  }
  return {};
}

const SpecField& field_named(std::string_view name) {
  return *std::ranges::find(backtest::spec_fields(), name, &SpecField::name);
}

GivenSettings given_elsewhere() {
  GivenSettings given;
  for (const SharedSetting& setting : shared_settings()) {
    if (setting.flag != nullptr) continue;
    if (const auto choice = find_elsewhere(setting)) {
      given.push_back({&field_named(setting.name), io::json_text(choice->text), choice->origin});
    }
  }
  return given;
}

// ----------------------------------------------------------------------------------------- files

// `name = value` lines or a JSON object, maybe as the "settings" of another one. Without the
// settings of the engine that variables say: those win.
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
  std::erase_if(given, [](const GivenSetting& item) {
    const auto shared =
        std::ranges::find(shared_settings(), item.field->name, &SharedSetting::name);
    return shared != shared_settings().end() && find_elsewhere(*shared).has_value();
  });
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

// The common flags, and where they are not given, what the files say about the engine.
CommonFlags engine_flags(CommonFlags flags, const GivenSettings& given,
                         const backtest::BacktestSpec& spec) {
  for (const GivenSetting& item : given) {
    const auto shared =
        std::ranges::find(shared_settings(), item.field->name, &SharedSetting::name);
    if (shared == shared_settings().end() || shared->flag == nullptr) continue;
    const Json value = item.field->get(spec);
    if (flags.*shared->flag || value.kind == Json::Kind::null) continue;
    flags.*shared->flag =
        value.kind == Json::Kind::string ? value.string : fmt::format("{}", value.integer);
  }
  flags.no_kv_cache |= spec.no_kv_cache;
  return flags;
}

}  // namespace

void add_backtest_options(Command& command, BacktestFlags& flags) {
  command.positionals("DATA", flags.data,
                      "CSV files of bars (date, open, high, low, close), or folders of them; or "
                      "`compare A.json B.json`",
                      false);
  const auto fields = backtest::spec_fields();
  flags.values.resize(fields.size());
  flags.switches.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!has_flag(fields[i])) continue;
    if (fields[i].type == SpecField::Type::toggle) {
      command.flag(flag_of(fields[i]), flags.switches[i], help_of(fields[i]));
    } else {
      command.option(flag_of(fields[i]), std::string(fields[i].placeholder), flags.values[i],
                     help_of(fields[i]));
    }
  }
  command
      .flag("--no-prefix-reuse", flags.no_prefix_reuse,
            "compute every context from its beginning; slower, the same bits")
      .option("--settings", "FILE", flags.settings_file,
              "settings from a file, `name = value` lines or JSON; flags and variables win over it")
      .option("--from-results", "FILE", flags.from_results,
              "take the settings of an earlier results.json; flags win over it")
      .option("--output-dir", "DIR", flags.output_dir, "output folder (default backtest-out)")
      .option("--json", "FILE", flags.json, "also write results.json here; - is stdout")
      .flag("--progress", flags.progress, "show progress even when stderr is not a terminal");
  add_common_options(command, flags.common);
  command.note(kVariablesNote);
}

BacktestRequest make_backtest_request(const BacktestFlags& flags) {
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
         "DATA is required: files of bars, or folders of them; see `toto backtest --help`");
  }
  if (std::find(data.begin(), data.end(), "-") != data.end()) {
    fail(ErrorCode::invalid_argument,
         "DATA is -, expected files or folders: the name of a file is its symbol");
  }
  if (flags.output_dir) request.output_dir = *flags.output_dir;
  request.json = flags.json;
  request.reuse_prefixes = !flags.no_prefix_reuse;
  request.progress = flags.progress;
  request.engine = resolve_settings(engine_flags(flags.common, given, request.spec));
  check_available(request.engine);
  request.spec.set_engine(request.engine.model, request.engine.engine);
  request.spec.seed = request.engine.seed;
  return request;
}

}  // namespace toto::cli
