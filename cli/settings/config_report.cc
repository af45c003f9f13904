#include "cli/settings/config_report.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "cli/settings/setting_table.h"
#include "cli/settings/settings_file.h"
#include "io/json.h"

namespace toto::cli {
namespace {

struct FlagTexts {
  const CommonFlags& common;
  const std::optional<std::string>&samples, &point;

  std::optional<std::string> find(std::string_view key) const {
    const auto given = [](bool flag) {
      return flag ? std::optional<std::string>("1") : std::nullopt;
    };
    if (key == "model") return common.model;
    if (key == "mode") return common.mode;
    if (key == "dtype") return common.dtype;
    if (key == "threads") return common.threads;
    if (key == "isa") return common.isa;
    if (key == "seed") return common.seed;
    if (key == "plan-cache-size") return common.plan_cache_size;
    if (key == "cache-dir") return common.cache_dir;
    if (key == "no-cache") return given(common.no_cache);
    if (key == "no-kv-cache") return given(common.no_kv_cache);
    if (key == "samples") return samples;
    if (key == "point") return point;
    return std::nullopt;
  }
};

// Everyone who says something about a setting, by falling authority.
std::vector<Choice> choices_of(const SettingSpec& spec, const FlagTexts& flags) {
  std::vector<Choice> choices;
  if (const auto flag = flags.find(spec.key)) choices.push_back({*flag, std::string(spec.flag)});
  for (const std::string_view variable : spec.variables) {
    if (variable.empty()) continue;
    if (auto choice = find_variable({variable.data()})) choices.push_back(std::move(*choice));
  }
  if (auto choice = settings_file().find(spec.key)) choices.push_back(std::move(*choice));
  for (Choice& choice : choices) {
    if (spec.secret) choice.text = "(not shown)";
  }
  return choices;
}

// What is in force; nothing for a setting that only somebody's text describes.
std::optional<std::string> value_in_force(std::string_view key, const Settings& settings) {
  const EngineOptions engine = resolve_options(settings.engine);
  const auto one_or_zero = [](bool on) { return std::string(on ? "1" : "0"); };
  if (key == "model") return settings.model;
  if (key == "mode") return std::string(name_of(engine.mode));
  if (key == "backend") return settings.backend;
  if (key == "dtype") return std::string(name_of(engine.dtype));
  if (key == "threads") return std::to_string(engine.threads);
  if (key == "isa") return std::string(name_of(engine.isa));
  if (key == "seed") return std::to_string(settings.seed);
  if (key == "plan-cache-size") return std::to_string(engine.plan_cache_size);
  if (key == "cache-dir") return settings.cache_dir.empty() ? "none" : settings.cache_dir;
  if (key == "no-cache") return one_or_zero(settings.no_cache);
  if (key == "no-kv-cache") return one_or_zero(!engine.use_kv_cache);
  if (key == "logs") return settings.engine.on_plan ? "plans" : "nothing";
  return std::nullopt;
}

// Who decided a setting; nothing where that is simply the first who says something. The switches
// have a say in these.
std::optional<std::string> origin_in_force(std::string_view key, const Settings& settings) {
  const Settings::Origins& origins = settings.origins;
  if (key == "mode") return origins.mode;
  if (key == "dtype") return origins.dtype;
  if (key == "isa") return origins.isa;
  if (key == "backend") return origins.backend;
  if (key == "threads") return origins.threads;
  if (key == "plan-cache-size") return origins.plan_cache_size;
  if (key == "logs") return origins.logs;
  return std::nullopt;
}

std::vector<std::string> warnings_of(const Settings& settings) {
  std::vector<std::string> warnings = settings.warnings;
  for (std::string& remark : remarks_on_variables()) warnings.push_back(std::move(remark));
  return warnings;
}

void write_warnings(io::JsonWriter& json, const std::vector<std::string>& warnings) {
  json.key("warnings").begin_array();
  for (const std::string& warning : warnings) json.value(warning);
  json.end_array();
}

// What holds when nobody says anything, of the settings that value_in_force leaves out.
std::string default_value(const SettingSpec& spec) {
  const std::string_view key = spec.key;
  if (!spec.otherwise.empty()) return std::string(spec.otherwise);
  if (key == "samples") return fmt::format("exact, then {} paths", kDefaultPaths);
  if (key == "point") return "none";
  return key == "compile" ? "1" : "0";
}

void check_forecast_settings(const FlagTexts& flags) {
  if (const auto samples = find_choice(flags.samples, "--samples", {"TOTO_NUM_SAMPLES"})) {
    whole_number(*samples, 1, kMaxSamples);
  }
  if (const auto point = find_choice(flags.point, "--point", {"TOTO_AGGREGATION_SPEC"})) {
    parse_choice(*point, parse_point);
  }
}

}  // namespace

ConfigReport report_config(const CommonFlags& common, const std::optional<std::string>& samples,
                           const std::optional<std::string>& point) {
  const FlagTexts flags{common, samples, point};
  const Settings settings = resolve_settings(common);
  check_available(settings);
  check_forecast_settings(flags);
  ConfigReport report{
      .file = settings_file().path(), .rows = {}, .warnings = warnings_of(settings)};
  for (const SettingSpec& spec : all_settings()) {
    std::vector<Choice> choices = choices_of(spec, flags);
    ConfigRow row{.name = spec.key, .value = {}, .origin = "default", .meaning = spec.meaning};
    if (!choices.empty()) row.origin = choices.front().origin;
    row.origin = origin_in_force(spec.key, settings).value_or(row.origin);
    row.value = value_in_force(spec.key, settings)
                    .value_or(choices.empty() ? default_value(spec) : choices.front().text);
    for (Choice& choice : choices) {
      if (choice.origin != row.origin) row.overruled.push_back(std::move(choice));
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

std::string json_text(const ConfigReport& report) {
  io::JsonWriter json;
  json.begin_object().key("file");
  report.file.empty() ? json.null() : json.value(report.file);
  json.key("settings").begin_array();
  for (const ConfigRow& row : report.rows) {
    json.begin_object()
        .field("name", row.name)
        .field("value", row.value)
        .field("origin", row.origin)
        .field("meaning", row.meaning)
        .key("overruled")
        .begin_array();
    for (const Choice& choice : row.overruled) {
      json.begin_object().field("value", choice.text).field("origin", choice.origin).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  write_warnings(json, report.warnings);
  return json.end_object().take();
}

std::string table_text(const ConfigReport& report) {
  std::size_t value_width = 5, origin_width = 6;
  for (const ConfigRow& row : report.rows) {
    value_width = std::max(value_width, one_line(row.value).size());
    origin_width = std::max(origin_width, one_line(row.origin).size());
  }
  std::string text =
      fmt::format("config file: {}\n\n", report.file.empty() ? "none" : one_line(report.file));
  text += fmt::format("{:<22}  {:<{}}  {}\n", "setting", "value", value_width, "origin");
  for (const ConfigRow& row : report.rows) {
    std::string remark(row.meaning);
    for (const Choice& choice : row.overruled) {
      remark += fmt::format("{}overrules {} ({})", remark.empty() ? "" : "; ",
                            one_line(choice.text), one_line(choice.origin));
    }
    std::string line = fmt::format("{:<22}  {:<{}}  {:<{}}  {}", row.name, one_line(row.value),
                                   value_width, one_line(row.origin), origin_width, remark);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

StatusReport report_status(const EnvFile& env, std::string path, bool exists) {
  StatusReport report{.path = std::move(path), .exists = exists};
  for (const char* name :
       {"TOTO_DISABLE_COMPILE", "TOTO_COMPILE", "TOTO_COMPILE_MODE", "TOTO_COMPILE_BACKEND"}) {
    StatusReport::Row row{.name = name, .in_file = env.find(name), .in_environment = {}};
    if (auto variable = find_variable({name})) row.in_environment = std::move(variable->text);
    if (row.in_file && row.in_file != row.in_environment) report.sourced = false;
    report.rows.push_back(std::move(row));
  }
  try {
    const Settings settings = resolve_settings({});
    check_available(settings);
    const EngineOptions engine = resolve_options(settings.engine);
    report.warnings = warnings_of(settings);
    report.mode = name_of(engine.mode);
    report.origin = settings.origins.mode;
    report.dtype = name_of(engine.dtype);
    report.isa = name_of(engine.isa);
  } catch (const Error& error) {  // what is wrong is the answer here
    report.mode = "none";
    report.origin = error.what();
    report.warnings = remarks_on_variables();
  }
  return report;
}

std::string json_text(const StatusReport& report) {
  io::JsonWriter json;
  const auto text_or_null = [&](std::string_view name, const std::optional<std::string>& text) {
    json.key(name);
    text ? json.value(*text) : json.null();
  };
  json.begin_object()
      .field("file", report.path)
      .field("exists", report.exists)
      .field("sourced", report.sourced)
      .field("mode", report.mode)
      .field("origin", report.origin);
  text_or_null("dtype", report.dtype.empty() ? std::nullopt : std::optional(report.dtype));
  text_or_null("isa", report.isa.empty() ? std::nullopt : std::optional(report.isa));
  json.key("variables").begin_array();
  for (const StatusReport::Row& row : report.rows) {
    json.begin_object().field("name", row.name);
    text_or_null("file", row.in_file);
    text_or_null("environment", row.in_environment);
    json.end_object();
  }
  json.end_array();
  write_warnings(json, report.warnings);
  return json.end_object().take();
}

std::string table_text(const StatusReport& report) {
  const std::string path = one_line(report.path);
  std::string text =
      report.exists ? fmt::format("{}\n\n", path) : fmt::format("{}: no such file\n\n", path);
  text += fmt::format("{:<22}  {:<16}  {}\n", "variable", "in the file", "in the environment");
  for (const StatusReport::Row& row : report.rows) {
    text += fmt::format("{:<22}  {:<16}  {}\n", row.name, one_line(row.in_file.value_or("-")),
                        one_line(row.in_environment.value_or("-")));
  }
  text += fmt::format("\nin force: {} ({})", report.mode, one_line(report.origin));
  if (!report.dtype.empty()) {
    text +=
        fmt::format(", dtype {}, {}", report.dtype,
                    report.mode == name_of(Mode::reference) ? "plain C++" : "isa " + report.isa);
  }
  text += "\n";
  if (!report.sourced) {
    text += fmt::format("the environment differs from the file: `source {}`\n", path);
  }
  return text;
}

}  // namespace toto::cli
