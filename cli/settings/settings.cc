#include "cli/settings/settings.h"
#include "cli/output.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/settings/setting_table.h"
#include "cli/settings/settings_file.h"

namespace toto::cli {
namespace {

struct ModeChoice {
  Mode mode = Mode::standard;
  std::string origin = "default";
  bool rolled_back = false;  // by a switch, not by asking for the mode
};

// What one place says about the mode: rollback switch, on/off switch, mode, in the order of their
// authority.
std::optional<ModeChoice> mode_of(const std::optional<Choice>& disable,
                                  const std::optional<Choice>& compile,
                                  const std::optional<Choice>& mode) {
  if (disable && switch_value(*disable)) return ModeChoice{Mode::reference, disable->origin, true};
  if (compile && !switch_value(*compile)) return ModeChoice{Mode::reference, compile->origin, true};
  if (mode) return ModeChoice{parse_choice(*mode, parse_mode), mode->origin};
  return std::nullopt;
}

// The flag, then all that the environment says, then all of the file: a mode in the environment is
// not undone by a switch in a file. A switch set in the environment hides the same one of the file.
ModeChoice find_mode(const std::optional<std::string>& flag) {
  if (const auto mode = find_choice(flag, "--mode")) {
    return {parse_choice(*mode, parse_mode), mode->origin};
  }
  const auto disable = find_variable({"TOTO_DISABLE_COMPILE"});
  const auto compile = find_variable({"TOTO_COMPILE"});
  if (auto said =
          mode_of(disable, compile, find_variable({"TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"}))) {
    return *said;
  }
  const SettingsFile& file = settings_file();
  const auto in_file = [&](const std::optional<Choice>& variable, const char* key) {
    return variable ? std::nullopt : file.find(key);
  };
  return mode_of(in_file(disable, "disable-compile"), in_file(compile, "compile"),
                 file.find("mode"))
      .value_or(ModeChoice{});
}

// A switch without a variable: the flag, or the file.
bool find_switch(bool flag, const char* name, std::string& origin) {
  if (flag) {
    origin = name;
    return true;
  }
  const auto choice = settings_file().find(find_spec(name)->key);
  if (!choice) return false;
  origin = choice->origin;
  return switch_value(*choice);
}

bool is_flag(const Choice& choice) { return choice.origin.starts_with("--"); }

// What stands beside a rollback must not stop it: in force, values that are wrong or that
// `reference` mode does not have are left aside, and one warning names them. Not the model and the
// seed, without which there is another forecast; and a misspelt flag is wrong usage as ever.
class Rollback {
 public:
  explicit Rollback(const ModeChoice& mode, Modes modes)
      : in_force_(mode.rolled_back && modes == Modes::one), switch_(mode.origin) {}

  bool in_force() const { return in_force_; }

  // Calls `use` with the choice, if there is one, and notes who said so.
  template <typename Use>
  void take(const std::optional<Choice>& choice, std::string& origin, const Use& use) {
    if (!choice) return;
    try {
      use(*choice);
      origin = choice->origin;
    } catch (const Error&) {
      if (!in_force_ || is_flag(*choice)) throw;
      leave_aside(*choice, origin);
    }
  }

  void leave_aside(const Choice& choice, std::string& origin) {
    names_.push_back(fmt::format("{} ({})", choice.origin, quoted(choice.text)));
    origin = switch_;
  }

  void warn(std::vector<std::string>& warnings) const {
    if (names_.empty()) return;
    warnings.push_back(fmt::format("{} is in force: reference mode leaves {} aside", switch_,
                                   fmt::join(names_, ", ")));
  }

 private:
  bool in_force_;
  std::string switch_;
  std::vector<std::string> names_;
};

void find_dtype(const std::optional<std::string>& flag, Rollback& rollback, Settings& settings) {
  const auto choice = find_choice(flag, "--dtype", {"TOTO_DTYPE"});
  std::string& origin = settings.origins.dtype;
  rollback.take(choice, origin, [&](const Choice& said) {
    settings.engine.dtype = parse_choice(said, parse_dtype);
  });
  const DType dtype = settings.engine.dtype;
  if (choice && rollback.in_force() && dtype != DType::f32 && dtype != DType::f64) {
    settings.engine.dtype = DType::f32;
    rollback.leave_aside(*choice, origin);
  }
}

void find_isa(const std::optional<std::string>& flag, Rollback& rollback, Settings& settings) {
  const auto choice = find_choice(flag, "--isa", {"TOTO_ISA"});
  std::string& origin = settings.origins.isa;
  rollback.take(choice, origin,
                [&](const Choice& said) { settings.engine.isa = parse_choice(said, parse_isa); });
  if (!choice || isa_available(settings.engine.isa)) return;
  if (!rollback.in_force()) {
    fail(ErrorCode::invalid_argument,
         "{} is {}, which this CPU does not have; its best is {}: use auto", choice->origin,
         choice->text, name_of(best_isa()));
  }
  settings.engine.isa = Isa::automatic;
  rollback.leave_aside(*choice, origin);
}

// Accepted so that a profile made for torch.compile works unchanged; there is one backend, and
// nothing is traced, so no scalar breaks anything.
void find_accepted(Rollback& rollback, Settings& settings) {
  std::string unused;
  rollback.take(find_choice({}, {}, {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"}), unused,
                [](const Choice& capture) { switch_value(capture); });
  rollback.take(find_choice({}, {}, {"TOTO_COMPILE_BACKEND"}), settings.origins.backend,
                [&](const Choice& backend) {
                  if (backend.text != "native" && backend.text != "inductor") {
                    fail(ErrorCode::invalid_argument, "{} is {}, expected native or inductor",
                         backend.origin, quoted(backend.text));
                  }
                  settings.backend = backend.text;
                });
}

void find_logs(Rollback& rollback, Settings& settings) {
  const auto use = [&](const Choice& logs) {
    for (const std::string& topic : list_of(logs)) {
      if (topic != "plans") {
        fail(ErrorCode::invalid_argument, "{} names {}; what can be logged is: plans", logs.origin,
             quoted(topic));
      }
    }
    settings.engine.on_plan = [](std::string_view sentence) {
      print_line(fmt::format("[plans] {}", sentence));
    };
  };
  rollback.take(find_choice({}, {}, {"TOTO_LOGS"}), settings.origins.logs, use);
}

void find_threads(const std::optional<std::string>& flag, Rollback& rollback, Settings& settings) {
  const int cores = usable_cores();
  const auto use = [&](const Choice& threads) {
    settings.engine.threads = whole_number(threads, 1, 4 * cores);
    if (settings.engine.threads > cores) {
      settings.warnings.push_back(fmt::format(
          "{} is {}, more than the {} usable cores: the threads will wait for each other",
          threads.origin, settings.engine.threads, cores));
    }
  };
  rollback.take(find_choice(flag, "--threads", {"TOTO_THREADS"}), settings.origins.threads, use);
}

void find_plan_cache_size(const std::optional<std::string>& flag, Rollback& rollback,
                          Settings& settings) {
  constexpr int kMostPlans = 1'000'000;
  rollback.take(find_choice(flag, "--plan-cache-size",
                            {"TORCHDYNAMO_CACHE_SIZE_LIMIT", "TORCHDYNAMO_RECOMPILE_LIMIT"}),
                settings.origins.plan_cache_size, [&](const Choice& size) {
                  settings.engine.plan_cache_size = whole_number(size, 1, kMostPlans);
                });
}

// What the engine refuses may stand in a profile the user has long forgotten: "; TOTO_DTYPE is set
// to f64" for what no flag said.
std::string settings_in_force(const Settings& settings) {
  std::string text;
  const auto add = [&](const std::string& origin, auto value) {
    if (origin == "default" || origin.starts_with("--")) return;
    const char* variable = std::getenv(origin.c_str());
    text += fmt::format("; {} is set to {}", origin,
                        variable == nullptr ? fmt::format("{}", value) : std::string(variable));
  };
  add(settings.origins.mode, name_of(settings.engine.mode));
  add(settings.origins.dtype, name_of(settings.engine.dtype));
  add(settings.origins.threads, settings.engine.threads);
  return text;
}

}  // namespace

std::optional<Choice> find_variable(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return Choice{value, variable};
  }
  return std::nullopt;
}

std::optional<Choice> find_choice(const std::optional<std::string>& flag, std::string_view name,
                                  std::initializer_list<const char*> variables) {
  if (flag) return Choice{*flag, std::string(name)};
  if (auto choice = find_variable(variables)) return choice;
  const SettingSpec* spec = variables.size() == 0 ? nullptr : find_spec(*variables.begin());
  return spec == nullptr ? std::nullopt : settings_file().find(spec->key);
}

double decimal_number(const Choice& choice, double low, double high) {
  double number = 0;
  const char* end = choice.text.data() + choice.text.size();
  const auto [stop, error] = std::from_chars(choice.text.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= low && number <= high)) {
    fail(ErrorCode::invalid_argument, "{} is {}, expected a number from {} to {}", choice.origin,
         quoted(choice.text), low, high);
  }
  return number;
}

std::uint64_t whole_number(const Choice& choice, std::uint64_t low, std::uint64_t high) {
  std::uint64_t number = 0;
  // Not strtol, nor CLI11 which uses it: to them "010" is eight and "0x10" sixteen.
  const char* end = choice.text.data() + choice.text.size();
  const auto [stop, error] = std::from_chars(choice.text.data(), end, number);
  if (error != std::errc() || stop != end || number < low || number > high) {
    fail(ErrorCode::invalid_argument, "{} is {}, expected a whole number from {} to {}",
         choice.origin, quoted(choice.text), low, high);
  }
  return number;
}

int whole_number(const Choice& choice, int low, int high) {
  return static_cast<int>(
      whole_number(choice, static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
}

bool switch_value(const Choice& choice) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return equal_ignoring_case(choice.text, word);
    });
  };
  if (is_one_of({"1", "true", "yes", "on"})) return true;
  if (is_one_of({"0", "false", "no", "off"})) return false;
  fail(ErrorCode::invalid_argument, "{} is {}, expected 1 or 0", choice.origin,
       quoted(choice.text));
}

std::vector<std::string> list_of(const Choice& choice) {
  std::vector<std::string> parts;
  std::string_view rest = choice.text;
  for (;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = trimmed(rest.substr(0, comma));
    if (part.empty()) {
      fail(ErrorCode::invalid_argument,
           "{} is {}, expected a comma-separated list without empty parts", choice.origin,
           quoted(choice.text));
    }
    parts.emplace_back(part);
    if (comma == std::string_view::npos) return parts;
    rest.remove_prefix(comma + 1);
  }
}

void add_common_options(Command& command, CommonFlags& flags, Modes modes) {
  if (modes == Modes::one) {
    command
        .option("--mode", "MODE", flags.mode,
                "reference, default, reduce-overhead or max-autotune (default: default)")
        .flag("--no-kv-cache", flags.no_kv_cache,
              "the reference's uncached path; needs --mode reference");
  }
  command
      .option("--model", "M", flags.model,
              fmt::format("folder, bundled model or owner/name of the local Hugging Face cache "
                          "(default {})",
                          kBundledModel))
      .option("--dtype", "T", flags.dtype,
              "what weights are stored as: f32, bf16 or int8; f64 in reference mode (default "
              "f32). bf16 and int8 take half and a quarter of the memory and are safe: they "
              "change the bundled model's quantile loss by less than 0.5 %")
      .option("--threads", "N", flags.threads, "threads (default: the usable physical cores)")
      .option("--isa", "ISA", flags.isa, "auto, reference, avx2 or avx512 (default auto)")
      .option("--seed", "S", flags.seed, "of the random numbers (default 0)")
      .option("--plan-cache-size", "N", flags.plan_cache_size,
              "plans kept in modes reduce-overhead and max-autotune (default 256)")
      .option("--cache-dir", "DIR", flags.cache_dir,
              "where packed weights and tuned schedules are kept for the next start (default "
              "$XDG_CACHE_HOME/toto, "
              "else ~/.cache/toto)")
      .flag("--no-cache", flags.no_cache,
            "neither use nor keep packed weights, tuned schedules and forecasts of backtests");
}

Choice find_cache_dir(const std::optional<std::string>& flag) {
  if (const auto folder = find_choice(flag, "--cache-dir", {"TOTO_CACHE_DIR"})) {
    if (!folder->text.empty()) return *folder;
    fail(ErrorCode::invalid_argument, "{} is empty, expected a folder; --no-cache keeps nothing",
         folder->origin);
  }
  Choice choice{.text = {}, .origin = "default"};
  if (const auto cache = find_variable({"XDG_CACHE_HOME"})) {
    choice.text = cache->text + "/toto";
  } else if (const auto home = find_variable({"HOME"})) {
    choice.text = home->text + "/.cache/toto";
  }
  return choice;
}

Settings resolve_settings(const CommonFlags& flags, Modes modes) {
  Settings settings;
  if (const auto model = find_choice(flags.model, "--model", {"TOTO_MODEL_ID"})) {
    settings.model = model->text;
    settings.origins.model = model->origin;
  }
  ModeChoice mode = find_mode(flags.mode);
  Rollback rollback(mode, modes);
  settings.engine.mode = mode.mode;
  settings.origins.mode = std::move(mode.origin);
  find_dtype(flags.dtype, rollback, settings);
  find_isa(flags.isa, rollback, settings);
  if (const auto seed = find_choice(flags.seed, "--seed", {"TOTO_SEED"})) {
    settings.seed = whole_number(*seed, std::uint64_t{0}, UINT64_MAX);
    settings.origins.seed = seed->origin;
  }
  find_accepted(rollback, settings);
  find_plan_cache_size(flags.plan_cache_size, rollback, settings);
  find_logs(rollback, settings);
  Choice cache_dir = find_cache_dir(flags.cache_dir);
  settings.cache_dir = std::move(cache_dir.text);
  settings.origins.cache_dir = std::move(cache_dir.origin);
  settings.no_cache = find_switch(flags.no_cache, "--no-cache", settings.origins.no_cache);
  if (!settings.no_cache) settings.engine.cache.folder = settings.cache_dir;
  find_threads(flags.threads, rollback, settings);
  settings.engine.use_kv_cache =
      !find_switch(flags.no_kv_cache, "--no-kv-cache", settings.origins.no_kv_cache);
  rollback.warn(settings.warnings);
  return settings;
}

void check_available(const Settings& settings) {
  try {
    resolve_options(settings.engine);
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + settings_in_force(settings));
  }
}

std::vector<std::string> model_warnings(const Engine& engine, const std::string& name) {
  std::vector<std::string> warnings = engine.model().warnings;
  if (!engine.model().trained) {
    warnings.push_back(fmt::format(
        "the model {} is untrained: its weights are random, its numbers are no forecast", name));
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
