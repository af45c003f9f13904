// `toto inspect`: the contents of a model folder and the memory it needs, as far as it can be read.
// The last step loads it from its own files: a model that does not load is refused.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cache/cache_folder.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings/settings.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "model/architecture.h"
#include "model/checkpoint.h"
#include "model/kv_cache.h"

namespace toto::cli {
namespace {

int typical_context() { return ForecastOptions().max_context; }

// Memory of one mode.
struct ModeMemory {
  std::string_view mode, dtype;
  double weights_mb = 0;
  double cache_mb = 0;  // keys and values of one variate with a full context
};

struct Inspection {
  LocatedModel model;
  std::optional<std::string> config_text;
  std::unique_ptr<Architecture> architecture;  // null if its config.json cannot be read
  std::optional<io::WeightFiles> files;
  std::optional<std::string> sha256;
  std::optional<bool> trained;
  std::vector<ModeMemory> memory;
  std::string cache_dir;
  cache::FolderUsage cache;
  std::vector<std::string> warnings;
  std::optional<Error> reason;  // why it would not load
};

// The optimised modes pack and fold; reference mode keeps what is in the file.
std::vector<ModeMemory> memory_of(const Checkpoint& checkpoint) {
  const Architecture& architecture = checkpoint.architecture();
  const int patch = architecture.facts().patch;
  const int positions = (typical_context() + patch - 1) / patch;
  const KvLayout layout(architecture.shape());
  const auto megabytes = [](std::size_t count, std::size_t size) {
    return static_cast<double>(count) * static_cast<double>(size) / 1e6;
  };
  const auto parameters = static_cast<std::size_t>(checkpoint.num_parameters());
  const std::size_t plain_cache = std::size_t{2} * layout.num_time_layers * layout.num_heads *
                                  layout.head_dim * static_cast<std::size_t>(positions);
  std::vector<ModeMemory> all;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::int8}) {
    if (!architecture.stores(dtype)) continue;
    all.push_back(
        {.mode = "default",
         .dtype = name_of(dtype),
         .weights_mb = megabytes(architecture.declare(checkpoint, dtype)->bytes(), 1),
         .cache_mb = megabytes(layout.floats(round_up_positions(positions)), sizeof(float))});
  }
  for (const auto& [dtype, size] :
       {std::pair(DType::f32, sizeof(float)), std::pair(DType::f64, sizeof(double))}) {
    all.push_back({.mode = "reference",
                   .dtype = name_of(dtype),
                   .weights_mb = megabytes(parameters, size),
                   .cache_mb = megabytes(plain_cache, size)});
  }
  return all;
}

// Each part by itself, so that a damaged one does not hide the others; loading decides.
Inspection inspect_model(const std::string& wanted) {
  Inspection found;
  found.model = locate_model(wanted);
  const std::string& folder = found.model.folder;
  const auto* cache_dir = settings::find(settings::engine_fields(), "cache_dir");
  const auto chosen = find_choice({}, *cache_dir);
  found.cache_dir = chosen ? chosen->text : default_cache_dir();
  found.cache = cache::usage_of(found.cache_dir);
  const auto attempt = [](const auto& step) {
    try {
      step();
    } catch (const Error&) {
      return;  // Engine::load below meets the same fault and names it
    }
  };
  attempt([&] {
    const std::string path = folder + "/config.json";
    std::string text = io::read_file(path, kMaxConfigBytes);
    std::vector<std::string> ignored;  // Engine::load reports them
    found.architecture = parse_architecture(text, path, ignored);
    found.config_text = std::move(text);
  });
  attempt([&] {
    found.files = io::WeightFiles::open(folder);
    const std::string* trained = found.files->metadata("trained");
    found.trained = trained == nullptr || *trained != "false";
  });
  attempt([&] {
    if (found.files) found.sha256 = found.files->sha256();
  });
  try {
    const Engine engine = Engine::load(folder);
    found.warnings = engine.model().warnings;  // that it is untrained has its own line
    found.memory = memory_of(Checkpoint::open(folder));
  } catch (const Error& error) {
    found.reason = error;
  }
  return found;
}

// By the file, not by the config: they may disagree.
std::uint64_t parameters_in(const io::WeightFiles& files) {
  std::uint64_t parameters = 0;
  for (const io::WeightFiles::StoredTensor& entry : files.entries()) {
    parameters += entry.tensor->num_elements();
  }
  return parameters;
}

std::string json_of(const Inspection& found) {
  io::JsonWriter json;
  json.begin_object().field("model", found.model.name).field("path", found.model.folder);
  json.field("loads", !found.reason.has_value());
  write_text(json, "reason", found.reason ? found.reason->what() : "");
  json.key("trained");
  found.trained ? json.value(*found.trained) : json.null();
  write_text(json, "weights_sha256", found.sha256);
  write_text(json, "architecture",
             found.architecture ? found.architecture->facts().architecture : "");
  if (found.architecture) {
    const ModelFacts& facts = found.architecture->facts();
    json.key("exact_steps");
    facts.can_sample ? json.value(facts.patch) : json.null();
    json.key("quantile_levels");
    if (facts.levels.empty()) {
      json.null();
    } else {
      json.begin_array();
      for (const double level : facts.levels) json.value(level);
      json.end_array();
    }
    json.field("mean_is", facts.can_sample ? "mean" : "median");
  }
  json.key("config");
  found.config_text ? json.value(io::parse_json(*found.config_text, "config.json")) : json.null();
  if (found.files) {
    json.field("num_parameters", parameters_in(*found.files));
    json.field("file_bytes", found.files->total_bytes()).key("tensors").begin_array();
    for (const io::WeightFiles::StoredTensor& entry : found.files->entries()) {
      json.begin_object()
          .field("name", entry.tensor->name)
          .field("dtype", io::name_of(entry.tensor->type))
          .key("shape")
          .begin_array();
      for (const std::int64_t size : entry.tensor->shape) json.value(size);
      json.end_array().end_object();
    }
    json.end_array();
  }
  json.key("memory").begin_array();
  for (const ModeMemory& memory : found.memory) {
    json.begin_object()
        .field("mode", memory.mode)
        .field("dtype", memory.dtype)
        .field("weights_mb", memory.weights_mb)
        .field("kv_cache_mb_per_variate", memory.cache_mb)
        .end_object();
  }
  json.end_array().key("cache").begin_object();
  json.field("folder", found.cache_dir)
      .field("entries", found.cache.num_entries)
      .field("bytes", found.cache.bytes)
      .end_object();
  write_texts(json, "warnings", found.warnings);
  return json.end_object().take();
}

std::string text_of(const Inspection& found) {
  std::string text = fmt::format("{}\n  folder       {}\n", one_line(found.model.name),
                                 one_line(found.model.folder));
  if (found.trained) {
    text += fmt::format("  weights      {}\n",
                        *found.trained ? "trained" : "untrained: random, no use for forecasts");
  }
  if (found.sha256) text += fmt::format("  sha256       {}\n", *found.sha256);
  if (found.files) {
    text += fmt::format("  parameters   {} in {} tensors, {:.1f} MB on disk\n",
                        parameters_in(*found.files), found.files->entries().size(),
                        static_cast<double>(found.files->total_bytes()) / 1e6);
  }
  if (found.architecture) {
    for (const auto& [name, value] : found.architecture->described()) {
      text += fmt::format("  {:<12} {}\n", name, value);
    }
  }
  if (!found.memory.empty()) {
    text += fmt::format("\nmemory (MB)       weights  cache of a variate with {} points\n",
                        typical_context());
  }
  for (const ModeMemory& memory : found.memory) {
    text += fmt::format("  {:<10} {:<4}  {:8.1f}  {:9.2f}\n", memory.mode, memory.dtype,
                        memory.weights_mb, memory.cache_mb);
  }
  text += fmt::format(
      "\ncache\n  {}: {} packed models, {:.1f} MB\n",
      found.cache_dir.empty() ? "no folder, HOME is not set" : one_line(found.cache_dir),
      found.cache.num_entries, static_cast<double>(found.cache.bytes) / 1e6);
  if (found.files) {
    text += "\ntensors\n";
    for (const io::WeightFiles::StoredTensor& entry : found.files->entries()) {
      text += fmt::format("  {:<4}  {:<14}  {}\n", io::name_of(entry.tensor->type),
                          io::shape_text(entry.tensor->shape), one_line(entry.tensor->name));
    }
  }
  return text;
}

}  // namespace

void add_inspect(Arguments& arguments) {
  struct InspectFlags {
    std::string model;
    std::optional<std::string> json;
  };
  const auto flags = std::make_shared<InspectFlags>();
  arguments
      .add_command("inspect", "config, tensors, parameter count, memory a model will need",
                   "toto inspect toto-mini --json -")
      .positional("MODEL", flags->model, "folder, bundled model, or owner/name")
      .json(flags->json, "write the report as JSON")
      .run([flags] {
        if (flags->json) check_writable(*flags->json);
        const Inspection found = inspect_model(flags->model);
        print_warnings(found.warnings);
        publish(flags->json, json_of(found), text_of(found));
        if (found.reason) throw Error(*found.reason);
        return 0;
      });
}

}  // namespace toto::cli
