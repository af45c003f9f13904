// The values of settings: flags, the variables behind them and the config file. A flag wins over a
// variable, a variable over the file, the file over the default. An overridden value is not read,
// so that a rollback by flag or TOTO_DISABLE_COMPILE works whatever else is set.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/settings/choice.h"
#include "cli/settings/flags.h"
#include "cli/settings/locate_model.h"
#include "settings/engine_settings.h"
#include "settings/forecast_settings.h"
#include "tables/forecast_file.h"
#include "toto/toto.h"

namespace toto::cli {

// ------------------------------------------------------------------------------------- one value

std::optional<Choice> find_variable(const char* name);  // set and not empty
// The first of the setting's variables that is set and not empty.
std::optional<Choice> find_variable(const settings::Setting& setting);
// The flag, else a variable, else the line of the config file.
std::optional<Choice> find_choice(const Flags& flags, const settings::Setting& setting);

// The parts of a comma-separated list, without the blanks around them; none may be empty:
// Error(invalid_argument) naming the origin.
std::vector<std::string> list_of(const Choice& choice);
// Calls `parse` with the text; its errors begin with the origin.
template <typename Parse>
auto parse_choice(const Choice& choice, const Parse& parse) {
  try {
    return parse(choice.text);
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, choice.origin + ": " + error.what());
  }
}

inline settings::Given given(const Choice& choice) {
  return {.value = io::json_text(choice.text), .origin = choice.origin};
}

// Stores the settings of the table whose flags the command has.
template <typename Fields, typename Target>
void read_settings(const Flags& flags, const Fields& fields, Target& target) {
  for (const auto& field : fields) {
    if (!flags.has(field.name)) continue;
    if (const auto choice = find_choice(flags, field)) read(field, given(*choice), target);
  }
}

// ------------------------------------------------------------------------------- common options

// Commands that run every mode have no --mode and nothing that belongs to one mode alone.
enum class Modes { one, all };
void add_common_options(Command& command, Flags& flags, Modes modes = Modes::one);

struct Settings : settings::EngineSettings {
  // By the name of the setting: a flag, a variable or a line of the config file. Settings that have
  // their default are not in it.
  std::map<std::string, std::string, std::less<>> origins = {};
  std::vector<std::string> warnings = {};

  std::string origin(std::string_view name) const;  // "default" if nothing set it
};

// "all", or a comma-separated list, each mode once. Error(invalid_argument) naming the origin.
std::vector<Mode> modes_of(const std::string& text, const std::string& origin, DType dtype);

// $XDG_CACHE_HOME/toto or ~/.cache/toto, where caches belong by the conventions of the desktop;
// empty without a home.
std::string default_cache_dir();

struct ResolveOptions {
  Modes modes = Modes::one;
  bool service = false;  // TOTO_SERVE_NAME wins over the other variables
};
// Reads the environment and the config file. Error(invalid_argument) for a wrong value. While a
// switch rolls back to reference mode, wrong values and those that reference mode does not have are
// ignored with a warning; not where every mode is run, which no switch changes. `cache_dir` is also
// set with --no-cache.
Settings resolve_settings(const Flags& flags, ResolveOptions options = {});

// resolve_settings, and Error(invalid_argument) for a mode, dtype or cache this version does not
// have, traced to the variable that set it. Needs no model.
Settings resolve_available(const Flags& flags, ResolveOptions options = {});

// For --help of the commands that forecast.
std::string variables_note();

// ------------------------------------------------------------------------------------- forecasts

// The rows of settings::forecast_fields() by name, in this order.
std::vector<settings::ForecastField> forecast_fields(std::initializer_list<std::string_view> names);

// Also checks that what was asked for goes together: --decode mean draws no samples.
// Error(invalid_argument).
void read_forecast_settings(const Flags& flags, settings::ForecastSettings& target);

// --------------------------------------------------------------------------------------- engine

struct LoadedEngine {
  Engine engine;
  LocatedModel model;
  std::uint64_t seed = 0;
  std::vector<std::string> warnings;  // of settings and model; untrained weights are one

  bool trained() const { return engine.model().trained; }
  tables::EngineBlock block() const;  // as every report has it
};

// Finds and loads the model.
LoadedEngine load_engine(const Settings& settings);

}  // namespace toto::cli
