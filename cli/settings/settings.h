// What the common options, the variables behind them and the config file say. A flag wins over a
// variable, a variable over the file, the file over the default; a value that is overruled is not
// looked at, so that a rollback by flag or TOTO_DISABLE_COMPILE works whatever else is set.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/settings/choice.h"
#include "cli/settings/locate_model.h"
#include "tables/forecast_file.h"
#include "toto/toto.h"

namespace toto::cli {

// ------------------------------------------------------------------------------------- one value

// The first of the variables that is set and not empty.
std::optional<Choice> find_variable(std::initializer_list<const char*> variables);
// The flag if it was given, else the first of the variables that is set and not empty, else what
// the config file says about the setting these variables belong to (setting_table.h).
std::optional<Choice> find_choice(const std::optional<std::string>& flag, std::string_view name,
                                  std::initializer_list<const char*> variables = {});

// Errors of all of these are invalid_argument and name the flag or variable.
std::uint64_t whole_number(const Choice& choice, std::uint64_t low, std::uint64_t high);
int whole_number(const Choice& choice, int low, int high);
double decimal_number(const Choice& choice, double low, double high);
bool switch_value(const Choice& choice);  // 1, true, yes, on, 0, false, no, off
// The parts of a comma-separated list, blanks around them removed; none may be empty.
std::vector<std::string> list_of(const Choice& choice);
// Calls `parse` with the text and puts the origin before what it complains about.
template <typename Parse>
auto parse_choice(const Choice& choice, const Parse& parse) {
  try {
    return parse(choice.text);
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, choice.origin + ": " + error.what());
  }
}

// ------------------------------------------------------------------------------- common options

struct CommonFlags {
  std::optional<std::string> model, mode, dtype, threads, isa, seed, plan_cache_size, cache_dir;
  bool no_kv_cache = false;
  bool no_cache = false;
};
// Commands that run every mode take no --mode and nothing that belongs to one mode alone.
enum class Modes { one, all };
void add_common_options(Command& command, CommonFlags& flags, Modes modes = Modes::one);

struct Settings {
  std::string model{kBundledModel};
  EngineOptions engine;
  std::uint64_t seed = 0;
  std::string backend = "native";
  std::string cache_dir;  // also with --no-cache; empty if the user has no folder for it
  bool no_cache = false;
  // Who said so: a flag, a variable, a line of the config file, or "default".
  struct Origins {
    std::string model = "default", mode = "default", dtype = "default", threads = "default",
                isa = "default", seed = "default", backend = "default", plan_cache_size = "default",
                cache_dir = "default", no_cache = "default", no_kv_cache = "default",
                logs = "default";
  } origins;
  std::vector<std::string> warnings;
};

// The flag, TOTO_CACHE_DIR, $XDG_CACHE_HOME/toto or ~/.cache/toto: where caches belong by the
// conventions of the desktop. The text is empty without a home.
Choice find_cache_dir(const std::optional<std::string>& flag);

// Reads the environment and the config file. Error(invalid_argument) for a wrong value. While a
// switch rolls back to `reference` mode, what that mode does not have and values that are wrong are
// left aside with a warning; not where every mode is run, which no switch changes.
Settings resolve_settings(const CommonFlags& flags, Modes modes = Modes::one);

// Error(invalid_argument) for a mode, dtype or cache this version does not have, traced to the
// variable that set it. Before anything is read: nothing needs to be known but the settings.
void check_available(const Settings& settings);

// For --help of the commands that forecast.
inline constexpr const char* kVariablesNote =
    "Defaults from the environment: TOTO_MODEL_ID, TOTO_COMPILE_MODE, TOTO_DTYPE, TOTO_THREADS,\n"
    "TOTO_ISA, TOTO_SEED, TOTO_CACHE_DIR, TOTO_NUM_SAMPLES, TOTO_AGGREGATION_SPEC. A flag wins\n"
    "over a variable, a variable over toto.conf. TOTO_DISABLE_COMPILE=1 goes back to reference "
    "mode. More in "
    "docs/settings.md.";

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

// What everybody who uses this model should know: what was ignored in its files, and that it is
// untrained.
std::vector<std::string> model_warnings(const Engine& engine, const std::string& name);

}  // namespace toto::cli
