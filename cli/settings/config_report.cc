#include "cli/settings/config_report.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/settings/setting_table.h"
#include "cli/settings/settings_file.h"
#include "io/json.h"

namespace toto::cli {
namespace {

using settings::Setting;

// All values of a setting, by falling authority.
std::vector<Choice> choices_of(const Setting& setting, const Flags& flags) {
  std::vector<Choice> choices;
  if (auto flag = flags.find(setting.name); flag && setting.section.empty()) {
    choices.push_back({std::move(*flag), setting.flag()});
  }
  for (const std::string& variable : setting.variables) {
    if (auto choice = find_variable(variable.c_str())) choices.push_back(std::move(*choice));
  }
  if (auto choice = settings_file().find(setting)) choices.push_back(std::move(*choice));
  for (Choice& choice : choices) {
    if (setting.secret) choice.text = "(not shown)";
  }
  return choices;
}

ConfigRow row_of(const Setting& setting, const Settings& resolved, const Flags& flags) {
  std::vector<Choice> choices = choices_of(setting, flags);
  ConfigRow row{.name = setting.key(),
                .value = choices.empty() ? setting.default_text() : choices.front().text,
                .origin = choices.empty() ? "default" : choices.front().origin,
                .meaning = setting.help};
  // Of the engine, where a switch may have decided and the run makes automatic choices.
  const auto* field = settings::find(settings::engine_fields(), setting.name);
  const auto origin = resolved.origins.find(setting.name);
  if (field == &setting && (choices.empty() || origin != resolved.origins.end())) {
    row.value = text_of(*field, field->get(resolved));
    row.origin = resolved.origin(setting.name);
  }
  for (Choice& choice : choices) {
    if (choice.origin != row.origin) row.overruled.push_back(std::move(choice));
  }
  return row;
}

std::vector<std::string> warnings_of(const Settings& settings) {
  std::vector<std::string> warnings = settings.warnings;
  for (std::string& remark : remarks_on_variables()) warnings.push_back(std::move(remark));
  return warnings;
}

// "enabled, mode max-autotune; this shell has it".
std::string status_line(const StatusReport& report) {
  std::string line = report.enabled ? fmt::format("enabled, mode {}", one_line(report.enabled_mode))
                                    : std::string("disabled, mode reference");
  if (!report.exists) return line + " (no " + one_line(report.path) + ")";
  return line + (report.sourced ? std::string("; this shell has it")
                                : fmt::format("; this shell does not have it: `source {}`",
                                              one_line(report.path)));
}

}  // namespace

ConfigReport report_config(const Flags& flags) {
  Settings resolved = resolve_available(flags);
  resolved.engine = resolve_options(resolved.engine);
  settings::ForecastSettings forecast;
  read_settings(flags, settings::forecast_fields(), forecast);
  ConfigReport report{
      .file = settings_file().path(), .rows = {}, .warnings = warnings_of(resolved)};
  for (const Setting* setting : all_settings()) {
    report.rows.push_back(row_of(*setting, resolved, flags));
  }
  return report;
}

std::string json_text(const ConfigReport& report) {
  io::JsonWriter json;
  json.begin_object();
  write_text(json, "file", report.file);
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
  write_texts(json.end_array(), "warnings", report.warnings);
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
      remark += fmt::format("{}overrides {} ({})", remark.empty() ? "" : "; ",
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
    if (auto variable = find_variable(name)) row.in_environment = std::move(variable->text);
    if (row.in_file && row.in_file != row.in_environment) report.sourced = false;
    report.rows.push_back(std::move(row));
  }
  try {
    const Settings settings = resolve_available({});
    const EngineOptions engine = resolve_options(settings.engine);
    report.warnings = warnings_of(settings);
    report.mode = name_of(engine.mode);
    report.origin = settings.origin("mode");
    report.dtype = name_of(engine.dtype);
    report.isa = name_of(engine.isa);
  } catch (const Error& error) {  // what is wrong is the answer here
    report.mode = "none";
    report.origin = error.what();
    report.warnings = remarks_on_variables();
  }
  if (exists) {
    report.enabled_mode =
        env.find("TOTO_COMPILE_MODE").value_or(std::string(name_of(Mode::standard)));
    report.enabled = env.find("TOTO_DISABLE_COMPILE").value_or("0") == "0" &&
                     env.find("TOTO_COMPILE").value_or("1") != "0" &&
                     report.enabled_mode != name_of(Mode::reference);
  } else {
    report.enabled_mode = report.mode;
    report.enabled = report.mode != "none" && report.mode != name_of(Mode::reference);
  }
  return report;
}

std::string json_text(const StatusReport& report) {
  io::JsonWriter json;
  json.begin_object()
      .field("file", report.path)
      .field("exists", report.exists)
      .field("enabled", report.enabled)
      .field("sourced", report.sourced)
      .field("mode", report.mode)
      .field("origin", report.origin);
  write_text(json, "dtype", report.dtype);
  write_text(json, "isa", report.isa);
  json.key("variables").begin_array();
  for (const StatusReport::Row& row : report.rows) {
    json.begin_object().field("name", row.name);
    write_text(json, "file", row.in_file);
    write_text(json, "environment", row.in_environment);
    json.end_object();
  }
  write_texts(json.end_array(), "warnings", report.warnings);
  return json.end_object().take();
}

std::string table_text(const StatusReport& report) {
  std::string text = status_line(report) + "\n\n";
  text += fmt::format("{:<22}  {:<16}  {}\n", "variable", "in the file", "in the environment");
  for (const StatusReport::Row& row : report.rows) {
    text += fmt::format("{:<22}  {:<16}  {}\n", row.name, one_line(row.in_file.value_or("-")),
                        one_line(row.in_environment.value_or("-")));
  }
  text += fmt::format("\nactive: {} ({})", report.mode, one_line(report.origin));
  if (!report.dtype.empty()) {
    text +=
        fmt::format(", dtype {}, {}", report.dtype,
                    report.mode == name_of(Mode::reference) ? "plain C++" : "isa " + report.isa);
  }
  return text + "\n";
}

}  // namespace toto::cli
