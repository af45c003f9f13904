#include "cli/settings/settings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/output.h"
#include "cli/settings/setting_table.h"
#include "cli/settings/settings_file.h"
#include "validate/runner.h"

namespace toto::cli {
namespace {

using settings::EngineField;
using settings::Setting;

const EngineField& engine_field(std::string_view name) {
  return *settings::find(settings::engine_fields(), name);
}

bool switch_value(const EngineField& field, const Choice& choice) {
  return settings::checked(field, given(choice)).boolean;
}

Mode mode_value(const Choice& choice) { return parse_choice(choice, parse_mode); }

struct ModeChoice {
  Mode mode = Mode::standard;
  std::string origin = {};   // empty: the default
  bool rolled_back = false;  // by a switch, not by asking for the mode
};

// The mode by the choices of one place, in the order of their authority.
std::optional<ModeChoice> mode_of(const std::optional<Choice>& disable,
                                  const std::optional<Choice>& compile,
                                  const std::optional<Choice>& mode) {
  if (disable && switch_value(engine_field("disable_compile"), *disable)) {
    return ModeChoice{Mode::reference, disable->origin, true};
  }
  if (compile && !switch_value(engine_field("compile"), *compile)) {
    return ModeChoice{Mode::reference, compile->origin, true};
  }
  if (mode) return ModeChoice{mode_value(*mode), mode->origin};
  return std::nullopt;
}

// The flag, then the environment, then the file: a mode in the environment is not undone by a
// switch in a file. A switch set in the environment hides the same one of the file.
ModeChoice find_mode(const std::optional<Choice>& asked) {
  if (asked) return {mode_value(*asked), asked->origin};
  const EngineField &mode = engine_field("mode"), &disable = engine_field("disable_compile"),
                    &compile = engine_field("compile");
  const auto disable_variable = find_variable(disable), compile_variable = find_variable(compile);
  if (auto found = mode_of(disable_variable, compile_variable, find_variable(mode))) return *found;
  const SettingsFile& file = settings_file();
  return mode_of(disable_variable ? std::nullopt : file.find(disable),
                 compile_variable ? std::nullopt : file.find(compile), file.find(mode))
      .value_or(ModeChoice{});
}

bool is_flag(const Choice& choice) { return choice.origin.starts_with("--"); }

// Reads settings, and makes sure that nothing stops a rollback: while it is active, values that are
// wrong or that reference mode does not have are ignored, and one warning names them. Not the model
// and the seed, which change the forecast; and a wrong flag stays wrong usage.
class Reader {
 public:
  Reader(const ModeChoice& mode, Modes modes, Settings& settings)
      : rolls_back_(mode.rolled_back && modes == Modes::one),
        switch_(mode.origin),
        settings_(settings) {}

  void read(const EngineField& field, const Choice& choice) {
    try {
      settings::read(field, given(choice), static_cast<settings::EngineSettings&>(settings_));
      settings_.origins[std::string(field.name)] = choice.origin;
    } catch (const Error&) {
      if (!rolls_back_ || is_flag(choice) || field.name == "seed") throw;
      ignore(field, choice);
    }
    const DType dtype = settings_.engine.dtype;
    if (rolls_back_ && dtype != DType::f32 && dtype != DType::f64) {
      settings_.engine.dtype = EngineOptions().dtype;
      ignore(field, choice);
    }
  }

  void warn() const {
    if (ignored_.empty()) return;
    settings_.warnings.push_back(fmt::format("{} forces reference mode; {} {} ignored", switch_,
                                             fmt::join(ignored_, ", "),
                                             ignored_.size() == 1 ? "is" : "are"));
  }

 private:
  void ignore(const EngineField& field, const Choice& choice) {
    ignored_.push_back(fmt::format("{} ({})", choice.origin, quoted(choice.text)));
    settings_.origins[std::string(field.name)] = switch_;
  }

  bool rolls_back_;
  std::string switch_;
  Settings& settings_;
  std::vector<std::string> ignored_;
};

// A value the engine refuses may come from a forgotten profile: "; TOTO_DTYPE is set to f64".
std::string origins_outside(const Settings& settings) {
  std::string text;
  for (const std::string_view name : {"mode", "dtype", "threads"}) {
    const std::string origin = settings.origin(name);
    if (origin == "default" || origin.starts_with("--")) continue;
    const char* variable = std::getenv(origin.c_str());
    const EngineField& field = engine_field(name);
    text += fmt::format("; {} is set to {}", origin,
                        variable == nullptr ? text_of(field, field.get(settings)) : variable);
  }
  return text;
}

}  // namespace

std::optional<Choice> find_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return Choice{value, name};
}

std::optional<Choice> find_variable(const Setting& setting) {
  for (const std::string& name : setting.variables) {
    if (auto choice = find_variable(name.c_str())) return choice;
  }
  return std::nullopt;
}

std::optional<Choice> find_choice(const Flags& flags, const Setting& setting) {
  if (auto text = flags.find(setting.name)) return Choice{std::move(*text), setting.flag()};
  if ((setting.doors & settings::kFile) == 0) return std::nullopt;
  if (auto choice = find_variable(setting)) return choice;
  return settings_file().find(setting);
}

std::vector<std::string> list_of(const Choice& choice) {
  const Setting names{.name = {}, .type = settings::Type::names};
  std::vector<std::string> parts;
  for (const io::Json& part : settings::checked(names, given(choice)).array) {
    parts.push_back(part.string);
  }
  return parts;
}

void add_common_options(Command& command, Flags& flags, Modes modes) {
  for (const EngineField& field : settings::engine_fields()) {
    const bool of_one_mode = field.name == "mode" || field.name == "no_kv_cache";
    if (of_one_mode && modes == Modes::all) continue;
    if ((field.doors & settings::kFlag) != 0) flags.add(command, field);
  }
}

std::string Settings::origin(std::string_view name) const {
  const auto found = origins.find(name);
  return found == origins.end() ? "default" : found->second;
}

std::vector<Mode> modes_of(const std::string& text, const std::string& origin, DType dtype) {
  if (text == "all") return validate::all_modes(dtype);
  std::vector<Mode> modes;
  for (const std::string& name : list_of({text, origin})) {
    const Mode mode = mode_value({name, origin});
    if (std::ranges::count(modes, mode) == 0) modes.push_back(mode);
  }
  return modes;
}

std::string default_cache_dir() {
  if (const auto cache = find_variable("XDG_CACHE_HOME")) return cache->text + "/toto";
  if (const auto home = find_variable("HOME")) return home->text + "/.cache/toto";
  return {};
}

Settings resolve_settings(const Flags& flags, ResolveOptions options) {
  // The flag, or of a service the variable that is as good as one.
  const auto find_first = [&](const EngineField& field) -> std::optional<Choice> {
    if (auto text = flags.find(field.name)) return Choice{std::move(*text), field.flag()};
    if (!options.service) return std::nullopt;
    return find_variable(settings::service_variable(field.name).c_str());
  };
  Settings resolved;
  const ModeChoice mode = find_mode(find_first(engine_field("mode")));
  resolved.engine.mode = mode.mode;
  if (!mode.origin.empty()) resolved.origins["mode"] = mode.origin;
  Reader reader(mode, options.modes, resolved);
  for (const EngineField& field : settings::engine_fields()) {
    const bool is_of_mode =
        field.name == "mode" || field.name == "disable_compile" || field.name == "compile";
    if (is_of_mode) continue;
    auto choice = find_first(field);
    if (!choice) choice = find_choice(flags, field);
    if (choice) reader.read(field, *choice);
  }
  reader.warn();
  const int threads = resolved.engine.threads, cores = usable_cores();
  if (threads > cores) {
    resolved.warnings.push_back(
        fmt::format("{} is {}, more than the {} usable cores: the threads will wait for each other",
                    resolved.origin("threads"), threads, cores));
  }
  if (resolved.log_plans) {
    resolved.engine.on_plan = [](std::string_view sentence) {
      print_line(fmt::format("[plans] {}", sentence));
    };
  }
  if (resolved.cache_dir.empty()) resolved.cache_dir = default_cache_dir();
  if (!resolved.no_cache) resolved.engine.cache.folder = resolved.cache_dir;
  return resolved;
}

Settings resolve_available(const Flags& flags, ResolveOptions options) {
  Settings settings = resolve_settings(flags, options);
  try {
    resolve_options(settings.engine);
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + origins_outside(settings));
  }
  return settings;
}

std::string variables_note() {
  std::vector<std::string> names;
  for (const Setting* setting : all_settings()) {
    const bool has_flag = (setting->doors & settings::kFlag) != 0;
    if (has_flag && setting->section.empty() && !setting->variables.empty()) {
      names.push_back(setting->variables.front());
    }
  }
  return fmt::format(
      "Defaults from the environment: {}.\nA flag wins over a variable, a variable over toto.conf. "
      "TOTO_DISABLE_COMPILE=1 forces reference mode.\nMore in docs/settings.md.",
      fmt::join(names, ", "));
}

std::vector<settings::ForecastField> forecast_fields(
    std::initializer_list<std::string_view> names) {
  std::vector<settings::ForecastField> rows;
  for (const std::string_view name : names) {
    rows.push_back(*settings::find(settings::forecast_fields(), name));
  }
  return rows;
}

// A flag asks for samples outright; a variable is only a default, which --paths and --decode mean
// override.
void read_forecast_settings(const Flags& flags, settings::ForecastSettings& target) {
  const int default_samples = target.options.num_samples;
  read_settings(flags, settings::forecast_fields(), target);
  ForecastOptions& options = target.options;
  settings::check_paths(options, flags.given("paths"), flags.given("samples"), "--");
  if (flags.given("paths")) options.num_samples = default_samples;
  if (options.decode != Decode::mean) return;
  if (flags.given("samples")) {
    fail(ErrorCode::invalid_argument,
         "--samples is {} but --decode mean follows one path and draws none; leave one of them out",
         options.num_samples);
  }
  options.num_samples = default_samples;
  if (options.keep_samples) {
    fail(ErrorCode::invalid_argument,
         "--emit samples and --decode mean exclude each other: the mean path draws no samples");
  }
}

std::vector<std::string> model_warnings(const Engine& engine, const std::string& name) {
  std::vector<std::string> warnings = engine.model().warnings;
  if (!engine.model().trained) {
    warnings.push_back(fmt::format(
        "the model {} is untrained: its weights are random and its forecasts meaningless", name));
  }
  return warnings;
}

LoadedEngine load_engine(const Settings& settings) {
  LocatedModel model = locate_model(settings.model);
  Engine engine = Engine::load(model.folder, settings.engine);
  std::vector<std::string> warnings = settings.warnings;
  for (std::string& warning : model_warnings(engine, model.name)) {
    warnings.push_back(std::move(warning));
  }
  return {.engine = std::move(engine),
          .model = std::move(model),
          .seed = settings.seed,
          .warnings = std::move(warnings)};
}

tables::EngineBlock LoadedEngine::block() const {
  return tables::describe(engine, model.name, seed);
}

}  // namespace toto::cli
