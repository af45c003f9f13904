// `toto doctor`: is this machine and this install in order? A line for each subject, with advice
// where something is wrong. Nothing is changed.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/output.h"
#include "cli/settings/config_report.h"
#include "cli/settings/settings.h"
#include "cli/settings/settings_file.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/sha256.h"
#include "model/architecture.h"
#include "tables/series_remarks.h"
#include "validate/zero_weights.h"

namespace toto::cli {
namespace {

constexpr std::string_view kStatusNames[] = {"ok", "warn", "fail"};

// The mode of a forecast, and its origin.
Check check_mode(const Settings& settings) {
  std::string value =
      fmt::format("{} ({}), {} ({})", name_of(settings.engine.mode), settings.origin("mode"),
                  name_of(settings.engine.dtype), settings.origin("dtype"));
  if (settings.origins.contains("backend")) {
    value += fmt::format("; {} asks for {}, kernels are always ours", settings.origin("backend"),
                         settings.backend);
  }
  Check check{.name = "mode", .value = std::move(value)};
  if (settings.engine.mode == Mode::reference) {
    check.status = Status::warn;
    check.advice =
        fmt::format("reference mode is for checking and rolling back, and slow; {} sets it",
                    settings.origin("mode"));
  }
  return check;
}

// Found and loaded without the cache: every tensor read and checked, the file hashed.
Check check_model(const Settings& settings, std::optional<LoadedEngine>& loaded) {
  Check check{.name = "model"};
  Settings uncached = settings;
  uncached.engine.cache.folder.clear();
  try {
    loaded.emplace(load_engine(uncached));
  } catch (const Error& error) {
    check.status = Status::fail;
    check.value = fmt::format("{} ({})", settings.model, settings.origin("model"));
    check.advice = error.what();
    return check;
  }
  const ModelInfo& info = loaded->engine.model();
  check.value = fmt::format("{} ({}) in {}, {} parameters, sha256 {}", loaded->model.name,
                            settings.origin("model"), loaded->model.folder, info.num_parameters,
                            info.weights_sha256);
  // Here and not on stderr as elsewhere: a doctor's findings are its result.
  std::vector<std::string> warnings = tables::model_warnings(info, loaded->model.name);
  if (!info.trained) warnings.back() += "; give a trained --model";
  if (!warnings.empty()) check.status = Status::warn;
  check.advice = fmt::format("{}", fmt::join(warnings, "; "));
  return check;
}

// Every file with its hash; the model's own hash is over the weights alone.
Check check_model_files(const LoadedEngine& loaded) {
  Check check{.name = "model files"};
  try {
    const std::string config = io::read_file(loaded.model.folder + "/config.json", kMaxConfigBytes);
    io::Sha256 hash;
    hash.update(std::as_bytes(std::span(config)));
    check.value = fmt::format("config.json {} bytes, sha256 {}", config.size(), hash.hex_digest());
    const io::WeightFiles weights = io::WeightFiles::open(loaded.model.folder);
    check.value += fmt::format("; weights in {}, {:.1f} MB, sha256 {}",
                               counted(weights.files().size(), "file"),
                               static_cast<double>(weights.total_bytes()) / 1e6, weights.sha256());
  } catch (const Error& error) {  // it has just been loaded
    check.status = Status::fail;
    check.advice = error.what();
  }
  return check;
}

// The hash of the bundled model is known, so damage is found. In other models only matrices of
// zeros are; goldens find the rest (docs/correctness.md).
Check check_weights(const LoadedEngine& loaded) {
  constexpr std::string_view kBundledSha256 =
      "98d159250bb90d5a46de7d6dc2359bf3d26d7ec36f39af607df93e5a56c87aad";
  const std::string& sha256 = loaded.engine.model().weights_sha256;
  Check check{.name = "weights", .value = "no matrix is all zeros"};
  if (loaded.model.name == settings::kBundledModel) {
    check.value += sha256 == kBundledSha256 ? ", the bundled ones" : ", not the bundled ones";
    if (sha256 != kBundledSha256) {
      check.status = Status::fail;
      check.advice = fmt::format(
          "the weights of {} have sha256 {}, expected {}: the file is damaged, install it again; a "
          "model of your own needs another name",
          settings::kBundledModel, sha256, kBundledSha256);
    }
  } else {
    check.value += "; nothing to compare their hash with: `toto verify --golden` does that";
  }
  try {
    const std::vector<std::string> warnings = validate::zero_warnings(loaded.model.folder);
    if (warnings.empty()) return check;
    check.value.replace(0, check.value.find_first_of(",;"), "some are all zeros");
    if (check.status == Status::ok) check.status = Status::warn;
    check.advice += (check.advice.empty() ? "" : "; ") + warnings.front();
  } catch (const Error& error) {  // it has just been loaded
    check.status = Status::fail;
    check.advice = error.what();
  }
  return check;
}

// Settings from flags, variables or the config file. Wrong values have failed before.
Check check_config(const Flags& flags) {
  const ConfigReport report = report_config(flags);
  Check check{.name = "config"};
  check.value = report.file.empty() ? "no config file" : fmt::format("file {}", report.file);
  std::size_t overruled = 0;
  for (const ConfigRow& row : report.rows) {
    overruled += row.overruled.size();
    if (row.origin == "default") continue;
    check.value += fmt::format(", {} {} ({})", row.name, row.value, row.origin);
  }
  if (overruled > 0) {
    check.value += fmt::format("; {} overridden, see `toto config show`", overruled);
  }
  if (!report.warnings.empty()) {
    check.status = Status::warn;
    check.advice = fmt::format("{}", fmt::join(report.warnings, "; "));
  }
  return check;
}

// A plan serves a second call of its shape, in the modes that keep plans.
Check check_plans(const Engine& engine, const Settings& settings) {
  Check check{.name = "plan cache"};
  const EngineOptions& options = engine.options();
  const std::string size = fmt::format("up to {} plans ({})", options.plan_cache_size,
                                       settings.origin("plan_cache_size"));
  if (options.mode != Mode::reduce_overhead && options.mode != Mode::max_autotune) {
    check.value = fmt::format("mode {} keeps no plans; {} in reduce-overhead and max-autotune",
                              name_of(options.mode), size);
    return check;
  }
  check.value = fmt::format("{}, {} made, {} made again for the same shape", size, engine.plans(),
                            engine.replans());
  if (engine.replans() > 0) {
    check.status = Status::fail;
    check.advice = "a shape known from warm-up was planned again; please report it";
  }
  return check;
}

// Whether the network distinguishes the steps ahead. Without its last layer it gives the same
// answer for each of them, and sampling would hide it.
bool answers(const Engine& engine, const Series& series) {
  const Trace trace = engine.trace(series, {.horizon = engine.model().facts.patch});
  for (const TraceArray& array : trace.arrays) {
    if (!array.distinctive || array.step_axis < 0 || array.shape[array.step_axis] < 2) continue;
    std::size_t after = 1;
    for (std::size_t i = array.step_axis + 1; i < array.shape.size(); ++i) after *= array.shape[i];
    const std::size_t slice = after * array.shape[array.step_axis];
    bool same = true;  // as the step before, wherever there is one
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      same = same && (i % slice < after || array.values[i] == array.values[i - after]);
    }
    if (same) return false;
  }
  return true;
}

// A small forecast, twice: finite, different at each step, and the same bits.
Check check_forecast(const Engine& engine) {
  Check check{.name = "forecast"};
  Series series;
  for (int t = 0; t < 64; ++t) series.values.push_back(static_cast<float>(t % 12));
  ForecastOptions options;
  options.horizon = 2 * engine.model().facts.first_block();
  options.num_samples = 4;
  try {
    const bool answered = answers(engine, series);
    const Forecast first = engine.forecast(series, options);
    engine.finish_warm_up();
    const Forecast second = engine.forecast(series, options);
    const bool finite = std::all_of(first.mean.begin(), first.mean.end(),
                                    [](float value) { return std::isfinite(value); });
    const bool same = first.mean == second.mean && first.quantiles == second.quantiles;
    check.value = fmt::format("{}{}, {} on repetition; keys and values in {}",
                              finite ? "finite" : "not finite",
                              answered ? "" : ", the same at every step of a patch",
                              same ? "the same" : "different", engine.kv_cache_name());
    if (finite && answered && same) return check;
    check.advice = "run `toto verify`; if it fails too, the model is damaged or this is a bug";
  } catch (const Error& error) {
    check.value = "failed";
    check.advice = error.what();
  }
  check.status = Status::fail;
  return check;
}

std::vector<Check> examine(const Flags& flags) {
  std::vector<Check> checks;
  checks.push_back({.name = "version", .value = fmt::format("toto {}", version())});
  Settings settings;
  bool cache_dir_known = false;  // not if the config file cannot be read
  try {
    settings.cache_dir = default_cache_dir();
    settings_file();
    cache_dir_known = true;
    Settings wanted = resolve_available(flags);
    checks.push_back(check_config(flags));
    settings = std::move(wanted);
  } catch (const Error& error) {
    // A forgotten variable of a profile is what people ask a doctor about.
    checks.push_back({.name = "settings",
                      .status = Status::fail,
                      .value = error.what(),
                      .advice = "correct or unset it; the checks below run with defaults"});
  }
  checks.push_back(check_isa(settings));
  checks.push_back(check_threads(settings));
  checks.push_back(check_limits());
  checks.push_back(check_mode(settings));
  std::optional<LoadedEngine> loaded;
  checks.push_back(check_model(settings, loaded));
  if (loaded) {
    checks.push_back(check_model_files(*loaded));
    checks.push_back(check_weights(*loaded));
    checks.push_back({.name = "kv cache", .value = loaded->engine.kv_cache_name()});
    checks.push_back(check_forecast(loaded->engine));
    checks.push_back(check_plans(loaded->engine, settings));
  }
  checks.push_back(check_memory(loaded));
  checks.push_back(check_clock());
  checks.push_back(check_temporary_folder());
  if (cache_dir_known) checks.push_back(check_cache_folder(settings));
  return checks;
}

int doctor(const Flags& flags, const std::optional<std::string>& json_path) {
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
    text += fmt::format("{:<4}  {:<16}  {}\n", status, check.name, one_line(check.value));
    if (!check.advice.empty()) text += fmt::format("{:24}{}\n", "", one_line(check.advice));
  }
  write_texts(json.end_array(), "warnings", printed_warnings());
  json.end_object();
  text += passed ? "\nall checks passed\n"
                 : "\nsome checks failed: see the lines that begin with fail\n";
  publish(json_path, json.take(), text);
  return passed ? 0 : 1;
}

}  // namespace

void add_doctor(Arguments& arguments) {
  struct DoctorFlags {
    std::optional<std::string> json;
    Flags settings;
  };
  const auto flags = std::make_shared<DoctorFlags>();
  Command command = arguments.add_command("doctor", "check this machine and installation",
                                          "toto doctor --json doctor.json");
  command.json(flags->json, "write the report as JSON");
  add_common_options(command, flags->settings);
  command.run([flags] { return doctor(flags->settings, flags->json); });
}

}  // namespace toto::cli
