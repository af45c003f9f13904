// `toto make-model`: a seeded random model of a given shape.
#include "model/random_model.h"

#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/settings.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "model/architecture.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

struct MakeModelFlags {
  std::string folder;
  std::optional<std::string> config, dtype, json;
  bool progress = false;
  Flags settings;
};

// A preset of some architecture, or a config.json of any.
std::unique_ptr<Architecture> read_config(const std::string& name) {
  std::vector<std::string> warnings, presets;
  for (const ArchitectureRow& row : architectures()) {
    for (const ModelPreset& preset : row.presets) {
      if (name == preset.name) return parse_architecture(preset.config_json, name, warnings);
      presets.emplace_back(preset.name);
    }
  }
  std::error_code error;
  if (!fs::exists(name, error)) {
    fail(ErrorCode::invalid_argument, "--config is {}, expected {} or the path of a config.json",
         quoted(name), fmt::join(presets, ", "));
  }
  auto architecture = parse_architecture(io::read_file(name, kMaxConfigBytes), name, warnings);
  print_warnings(warnings);
  return architecture;
}

io::TensorType parse_type(std::string_view name) {
  if (name == "f32") return io::TensorType::f32;
  if (name == "f16") return io::TensorType::f16;
  if (name == "bf16") return io::TensorType::bf16;
  fail(ErrorCode::invalid_argument, "unknown dtype {}; the choices are f32, f16, bf16",
       quoted(name));
}

// Random weights may replace random weights, and nothing else.
void check_folder(const std::string& folder) {
  if (folder.empty()) {
    fail(ErrorCode::invalid_argument,
         "OUTPUT_DIR is empty, expected a folder to write the model to");
  }
  std::error_code error;
  const fs::path path(folder);
  if (fs::exists(path, error) && !fs::is_directory(path, error)) {
    fail(ErrorCode::invalid_argument, "{}: is a file, expected a folder to write the model to",
         folder);
  }
  if (!fs::exists(path / "model.safetensors", error) &&
      !fs::exists(path / "model.safetensors.index.json", error)) {
    return;
  }
  const std::string* trained = nullptr;
  std::optional<io::WeightFiles> files;
  try {
    files = io::WeightFiles::open(folder);
    trained = files->metadata("trained");
  } catch (const Error&) {
    trained = nullptr;  // damaged, but perhaps of value
  }
  if (trained == nullptr || *trained != "false") {
    fail(ErrorCode::invalid_argument,
         "{}: holds weights that make-model did not write; choose another folder", folder);
  }
}

int make_model_command(const MakeModelFlags& flags) {
  settings::EngineSettings engine;
  read_settings(flags.settings, settings::engine_fields(), engine);
  const std::uint64_t seed = engine.seed;
  const io::TensorType type = parse_choice({flags.dtype.value_or("f32"), "--dtype"}, parse_type);
  const std::unique_ptr<Architecture> architecture = read_config(flags.config.value_or("base"));
  check_folder(flags.folder);
  check_outputs({}, {{"the weights' file", flags.folder + "/model.safetensors"},
                     {"the config's file", flags.folder + "/config.json"},
                     {"--json", flags.json}});

  {
    const InterruptGuard guard;
    Progress progress("make-model", "parameters", flags.progress);
    make_model(*architecture, seed, type, flags.folder,
               {.cancelled = InterruptGuard::interrupted,
                .progress = [&](std::uint64_t done, std::uint64_t total) {
                  progress.update(done, total);
                }});
  }

  const io::WeightFiles files = io::WeightFiles::open(flags.folder);
  const std::string sha256 = files.sha256();
  std::uint64_t parameters = 0;
  for (const auto& entry : files.entries()) parameters += entry.tensor->num_elements();
  io::JsonWriter json;
  json.begin_object()
      .field("folder", flags.folder)
      .field("trained", false)
      .field("seed", seed)
      .field("dtype", io::name_of(type))
      .field("num_parameters", parameters)
      .field("file_bytes", files.total_bytes())
      .field("weights_sha256", sha256);
  write_texts(json, "warnings", printed_warnings());
  json.end_object();
  publish(flags.json, json.take(),
          fmt::format("{}: {} parameters, {}, seed {}, untrained, {:.1f} MB, sha256 {}\n",
                      one_line(flags.folder), parameters, io::name_of(type), seed,
                      static_cast<double>(files.total_bytes()) / 1e6, sha256));
  return 0;
}

}  // namespace

void add_make_model(Arguments& arguments) {
  const auto flags = std::make_shared<MakeModelFlags>();
  Command command =
      arguments.add_command("make-model", "a seeded random model of a given shape, for benches",
                            "toto make-model models/random --config mini --seed 1 --dtype bf16");
  command.positional("OUTPUT_DIR", flags->folder, "folder for config.json and model.safetensors")
      .option("--config", "C", flags->config,
              "base (Toto-Open-Base-1.0), mini, or a config.json (default base)")
      .option("--dtype", "T", flags->dtype, "type of the weights: f32, f16 or bf16 (default f32)")
      .json(flags->json, "describe the model as JSON")
      .progress(flags->progress);
  flags->settings.add(command, *settings::find(settings::engine_fields(), "seed"));
  command.run([flags] { return make_model_command(*flags); });
}

}  // namespace toto::cli
