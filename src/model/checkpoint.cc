#include "model/checkpoint.h"

#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "io/atomic_file.h"

namespace toto {
namespace {

constexpr std::string_view kTargetLabel = "target_variate_label";
constexpr std::string_view kExogenousLabel = "exogenous_variate_label";

// toto.py: Toto._map_state_dict_keys, towards the names without xFormers.
std::string canonical_name(std::string_view name) {
  constexpr std::string_view kPrefix = "model.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  std::string result(name);
  const auto replace = [&result](std::string_view from, std::string_view to) {
    if (const std::size_t at = result.find(from); at != std::string::npos) {
      result.replace(at, from.size(), to);
    }
  };
  replace(".mlp.0.w12.", ".mlp.0.");
  replace(".mlp.0.w3.", ".mlp.2.");
  return result;
}

bool is_recomputed(std::string_view name) { return name.ends_with("rotary_emb.freqs"); }

}  // namespace

std::vector<TensorSpec> tensor_specs(const Config& config, bool with_labels) {
  const std::int64_t e = config.embed_dim, h = config.mlp_hidden_dim, p = config.patch_size;
  const std::int64_t k = config.num_components;
  std::vector<TensorSpec> specs;
  const auto linear = [&specs](const std::string& name, std::int64_t out, std::int64_t in) {
    specs.push_back({name + ".weight", {out, in}});
    specs.push_back({name + ".bias", {out}});
  };
  if (with_labels) {
    specs.push_back({std::string(kTargetLabel), {e}});
    specs.push_back({std::string(kExogenousLabel), {e}});
  }
  linear("patch_embed.projection", e, p);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("transformer.layers.{}", i);
    specs.push_back({layer + ".norm1.scale", {e}});
    linear(layer + ".attention.wQKV", 3 * e, e);
    linear(layer + ".attention.wO", e, e);
    specs.push_back({layer + ".norm2.scale", {e}});
    linear(layer + ".mlp.0", 2 * h, e);
    linear(layer + ".mlp.2", e, h);
  }
  linear("unembed", e * p, e);
  linear("output_distribution.df", k, e);
  linear("output_distribution.loc_proj", k, e);
  linear("output_distribution.scale_proj", k, e);
  if (config.head == HeadKind::mixture_of_student_t) {
    linear("output_distribution.mixture_weights", k, e);
  }
  return specs;
}

Checkpoint Checkpoint::open(const std::string& folder) {
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    fail(ErrorCode::not_found,
         "no model folder at {}; give a folder with config.json and model.safetensors", folder);
  }
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  const std::string config_path = folder + "/config.json";
  checkpoint.config_ =
      parse_config(io::read_file(config_path, kMaxConfigBytes), config_path, checkpoint.warnings_);
  checkpoint.files_ = io::WeightFiles::open(folder);
  checkpoint.index_tensors();
  checkpoint.check_tensors();
  return checkpoint;
}

void Checkpoint::index_tensors() {
  for (const io::WeightFiles::Entry& entry : files_.entries()) {
    std::string name = canonical_name(entry.tensor->name);
    if (is_recomputed(name)) continue;
    const auto [it, inserted] = tensors_.emplace(std::move(name), entry);
    if (!inserted) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} is there twice, as \"{}\" and \"{}\"",
           entry.file->path(), it->first, it->second.tensor->name, entry.tensor->name);
    }
  }
}

void Checkpoint::check_tensors() {
  const bool target = tensors_.contains(std::string(kTargetLabel));
  const bool exogenous = tensors_.contains(std::string(kExogenousLabel));
  if (target != exogenous) {
    fail(ErrorCode::corrupt_file, "{}: tensor {} is missing while {} is there", folder_,
         target ? kExogenousLabel : kTargetLabel, target ? kTargetLabel : kExogenousLabel);
  }
  has_labels_ = target;

  const std::vector<TensorSpec> specs = tensor_specs(config_, has_labels_);
  for (const TensorSpec& spec : specs) {
    const auto it = tensors_.find(spec.name);
    if (it == tensors_.end()) {
      fail(
          ErrorCode::corrupt_file,
          "{}: tensor {} is missing; config.json asks for it with shape {}; are both of one model?",
          folder_, spec.name, io::shape_text(spec.shape));
    }
    const io::TensorInfo& tensor = *it->second.tensor;
    if (tensor.shape != spec.shape) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} has shape {}, config.json asks for {}",
           it->second.file->path(), tensor.name, io::shape_text(tensor.shape),
           io::shape_text(spec.shape));
    }
    using io::TensorType;
    if (tensor.type != TensorType::f32 && tensor.type != TensorType::f16 &&
        tensor.type != TensorType::bf16) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} has type {}, expected F32, F16 or BF16",
           it->second.file->path(), tensor.name, io::name_of(tensor.type));
    }
  }
  if (tensors_.size() == specs.size()) return;
  std::unordered_map<std::string_view, bool> expected;
  for (const TensorSpec& spec : specs) expected.emplace(spec.name, true);
  constexpr std::size_t kMostNamed = 20;
  std::size_t unknown = 0;
  for (const io::WeightFiles::Entry& entry : files_.entries()) {
    const std::string name = canonical_name(entry.tensor->name);
    if (is_recomputed(name) || expected.contains(name)) continue;
    if (++unknown <= kMostNamed) {
      warnings_.push_back(fmt::format("{}: unknown tensor {} {} is ignored", entry.file->path(),
                                      entry.tensor->name.substr(0, 200),
                                      io::shape_text(entry.tensor->shape)));
    }
  }
  if (unknown > kMostNamed) {
    warnings_.push_back(
        fmt::format("{}: {} more unknown tensors are ignored", folder_, unknown - kMostNamed));
  }
}

bool Checkpoint::trained() const {
  const std::string* value = files_.metadata("trained");
  return value == nullptr || *value != "false";
}

const io::TensorInfo& Checkpoint::info(std::string_view name) const {
  const auto it = tensors_.find(std::string(name));
  if (it == tensors_.end()) fail(ErrorCode::internal, "tensor {} was never checked", name);
  return *it->second.tensor;
}

void Checkpoint::read(std::string_view name, std::uint64_t first, std::span<float> dst) const {
  const auto it = tensors_.find(std::string(name));
  if (it == tensors_.end()) fail(ErrorCode::internal, "tensor {} was never checked", name);
  it->second.file->read_floats(*it->second.tensor, first, dst);
}

std::vector<float> Checkpoint::read(std::string_view name) const {
  std::vector<float> values(info(name).num_elements());
  read(name, 0, values);
  return values;
}

}  // namespace toto
