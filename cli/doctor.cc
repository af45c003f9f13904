// `toto doctor`: is this machine and this install in order? A line for each subject, with advice
// where something is wrong. Nothing is changed.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cache_folder.h"
#include "commands.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/utf8.h"
#include "output.h"
#include "settings.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

enum class Status { ok, warn, fail };
constexpr std::string_view kStatusNames[] = {"ok", "warn", "fail"};

struct Check {
  std::string name = {};
  Status status = Status::ok;
  std::string value = {};
  std::string advice = {};  // empty when all is well
};

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) {
      return io::one_line(line.substr(std::min(colon + 2, line.size())));
    }
  }
  return "unknown CPU";
}

// Which kernels run, and why these.
Check check_isa(const Settings& settings) {
  std::string available;
  for (const Isa isa : {Isa::reference, Isa::avx2, Isa::avx512}) {
    if (isa_available(isa))
      available += fmt::format("{}{}", available.empty() ? "" : ", ", name_of(isa));
  }
  const bool automatic = settings.engine.isa == Isa::automatic;
  const Isa used = automatic ? best_isa() : settings.engine.isa;
  Check check{.name = "instruction set",
              .value = fmt::format("{}, {}; {} has {}", name_of(used),
                                   automatic ? "the best of this CPU" : settings.origins.isa,
                                   cpu_name(), available)};
  if (used == Isa::reference) {
    check.status = Status::warn;
    check.advice = automatic ? "without AVX2 forecasts are right but several times slower"
                             : "use --isa auto: plain C++ is several times slower";
  }
  return check;
}

Check check_threads(const Settings& settings) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int affinity =
      sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  const int cores = usable_cores();
  const int threads = settings.engine.threads == 0 ? cores : settings.engine.threads;
  Check check{.name = "threads",
              .value = fmt::format("{} ({}); {} usable cores, {} CPUs allowed of {} online",
                                   threads, settings.origins.threads, cores, affinity,
                                   sysconf(_SC_NPROCESSORS_ONLN))};
  if (threads > cores) {
    check.status = Status::warn;
    check.advice =
        fmt::format("use at most {}: more threads than cores wait for each other", cores);
  }
  return check;
}

// What a forecast would run in now, and who said so.
Check check_mode(const Settings& settings) {
  std::string value =
      fmt::format("{} ({}), {} ({})", name_of(settings.engine.mode), settings.origins.mode,
                  name_of(settings.engine.dtype), settings.origins.dtype);
  if (settings.origins.backend != "default") {
    value += fmt::format("; {} asks for {}, kernels are always our own", settings.origins.backend,
                         settings.backend);
  }
  Check check{.name = "mode", .value = std::move(value)};
  if (settings.engine.mode == Mode::reference) {
    check.status = Status::warn;
    check.advice =
        fmt::format("reference mode is for checking and rolling back, and slow; {} sets it",
                    settings.origins.mode);
  }
  return check;
}

Check check_memory(const std::optional<LoadedEngine>& loaded) {
  constexpr double kEnoughMb = 256;  // of the bundled model's forecasts none comes near it
  const double available = static_cast<double>(available_memory()) / 1e6;
  Check check{.name = "memory", .value = fmt::format("{:.0f} MB free", available)};
  if (loaded) {
    check.value += fmt::format(", {:.1f} MB taken by the weights",
                               static_cast<double>(loaded->engine.model().weight_bytes) / 1e6);
  }
  if (available < kEnoughMb) {
    check.status = Status::warn;
    check.advice = "free some: long horizons and many samples will be refused";
  }
  return check;
}

// Found and loaded: every tensor read and checked, the file hashed.
Check check_model(const Settings& settings, std::optional<LoadedEngine>& loaded) {
  Check check{.name = "model"};
  try {
    loaded.emplace(load_engine(settings));
  } catch (const Error& error) {
    check.status = Status::fail;
    check.value = fmt::format("{} ({})", settings.model, settings.origins.model);
    check.advice = error.what();
    return check;
  }
  const ModelInfo& info = loaded->engine.model();
  check.value = fmt::format("{} ({}) in {}, {} parameters, sha256 {}", loaded->model.name,
                            settings.origins.model, loaded->model.folder, info.num_parameters,
                            info.weights_sha256);
  if (!info.trained) {
    check.status = Status::warn;
    check.advice = "the weights are untrained, its numbers are no forecast; give a trained --model";
  } else if (!info.warnings.empty()) {
    check.status = Status::warn;
    check.advice = info.warnings.front();
  }
  return check;
}

// A small forecast, twice: finite, and the same bits.
Check check_forecast(const Engine& engine) {
  Check check{.name = "forecast"};
  Series series;
  for (int t = 0; t < 64; ++t) series.values.push_back(static_cast<float>(t % 12));
  ForecastOptions options;
  options.horizon = 2 * engine.model().patch_size;
  options.num_samples = 4;
  try {
    const Forecast first = engine.forecast(series, options);
    const Forecast second = engine.forecast(series, options);
    const bool finite = std::all_of(first.mean.begin(), first.mean.end(),
                                    [](float value) { return std::isfinite(value); });
    const bool same = first.mean == second.mean && first.quantiles == second.quantiles;
    check.value =
        fmt::format("{}, {} on repetition; keys and values in {}", finite ? "finite" : "not finite",
                    same ? "the same" : "different", engine.kv_cache_name());
    if (finite && same) return check;
    check.advice = "run `toto verify`; if it fails too, the model is damaged or this is a bug";
  } catch (const Error& error) {
    check.value = "failed";
    check.advice = error.what();
  }
  check.status = Status::fail;
  return check;
}

Check check_clock() {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  const auto start = steady_clock::now();
  auto tick = start;
  // A clock that stands still must not hang the doctor.
  for (int i = 0; i < 1'000'000 && tick == start; ++i) tick = steady_clock::now();
  const auto resolution = std::chrono::duration<double, std::micro>(tick - start).count();
  const auto today = std::chrono::floor<std::chrono::days>(system_clock::now());
  const std::chrono::year_month_day date{today};
  const int year = static_cast<int>(date.year());
  Check check{.name = "clock",
              .value = fmt::format("{:04}-{:02}-{:02}, ticks of {:.2f} us", year,
                                   static_cast<unsigned>(date.month()),
                                   static_cast<unsigned>(date.day()), resolution)};
  if (tick == start || resolution > 1000) {
    check.status = Status::fail;
    check.advice = "the steady clock is too coarse to time a forecast";
  } else if (year < 2024 || year > 2100) {
    check.status = Status::warn;
    check.advice = "the date looks wrong; set the system clock";
  }
  return check;
}

// The rights are looked at, nothing is made.
Check check_folder(std::string name, const fs::path& folder, Status if_not, std::string advice) {
  Check check{.name = std::move(name), .value = folder.string()};
  try {
    check_writable((folder / "toto-probe").string());
  } catch (const Error& error) {
    check.status = if_not;
    check.value = error.what();
    check.advice = std::move(advice);
  }
  return check;
}

Check check_temporary_folder() {
  constexpr const char* kAdvice = "set TMPDIR to a folder that can be written";
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);  // empty if what is set is no folder
  if (!error) return check_folder("temporary folder", folder, Status::fail, kAdvice);
  const char* variable = std::getenv("TMPDIR");
  return {.name = "temporary folder",
          .status = Status::fail,
          .value = fmt::format("{}: {}", variable == nullptr ? "/tmp" : variable, error.message()),
          .advice = kAdvice};
}

std::vector<Check> examine(const CommonFlags& flags) {
  std::vector<Check> checks;
  checks.push_back({.name = "version", .value = fmt::format("toto {}", version())});
  Settings settings;
  try {
    Settings wanted = resolve_settings(flags);
    check_available(wanted);
    settings = std::move(wanted);
  } catch (const Error& error) {
    // A variable stands in the user's profile for long: that is what a doctor is asked about.
    checks.push_back({.name = "settings",
                      .status = Status::fail,
                      .value = error.what(),
                      .advice = "correct or unset it; the checks below run with defaults"});
  }
  checks.push_back(check_isa(settings));
  checks.push_back(check_threads(settings));
  checks.push_back(check_mode(settings));
  std::optional<LoadedEngine> loaded;
  checks.push_back(check_model(settings, loaded));
  if (loaded) {
    for (const std::string& warning : loaded->warnings) print_warning(warning);
    checks.push_back({.name = "kv cache", .value = loaded->engine.kv_cache_name()});
    checks.push_back(check_forecast(loaded->engine));
  }
  checks.push_back(check_memory(loaded));
  checks.push_back(check_clock());
  checks.push_back(check_temporary_folder());
  checks.push_back(check_folder("cache folder", cache_folder(), Status::warn,
                                "set TOTO_CACHE_DIR to a folder that can be written"));
  return checks;
}

int doctor(const CommonFlags& flags, const std::optional<std::string>& json_path) {
  if (json_path) check_writable(*json_path);
  const std::vector<Check> checks = examine(flags);
  const bool passed = std::none_of(checks.begin(), checks.end(),
                                   [](const Check& check) { return check.status == Status::fail; });
  io::JsonWriter json;
  json.begin_object().field("passed", passed).key("checks").begin_array();
  std::string text;
  for (const Check& check : checks) {
    const std::string_view status = kStatusNames[static_cast<int>(check.status)];
    json.begin_object()
        .field("name", check.name)
        .field("status", status)
        .field("value", check.value)
        .field("advice", check.advice)
        .end_object();
    text += fmt::format("{:<4}  {:<16}  {}\n", status, check.name, io::one_line(check.value));
    if (!check.advice.empty()) text += fmt::format("{:24}{}\n", "", io::one_line(check.advice));
  }
  json.end_array().end_object();
  text += passed ? "\nin order\n" : "\nnot in order: see the lines that begin with fail\n";
  publish(json_path, json.take(), text);
  return passed ? 0 : 1;
}

}  // namespace

void add_doctor(Arguments& arguments) {
  struct Flags {
    std::optional<std::string> json;
    CommonFlags common;
  };
  const auto flags = std::make_shared<Flags>();
  Command command = arguments.add_command("doctor", "is this machine and this install in order?",
                                          "toto doctor --json doctor.json");
  command.option("--json", "FILE", flags->json, "write the report as JSON; - is stdout");
  add_common_options(command, flags->common);
  command.run([flags] { return doctor(flags->common, flags->json); });
}

}  // namespace toto::cli
