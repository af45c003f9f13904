#include "model/checkpoint.h"

#include <sys/stat.h>

#include <span>
#include <utility>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/sha256.h"

namespace toto {

// Reads config.json and the headers of the weights; values are read when they are packed.
Checkpoint Checkpoint::open(const std::string& folder) {
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    fail(ErrorCode::not_found,
         "no model folder at {}; expected a folder with config.json and model.safetensors", folder);
  }
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  const std::string config_path = folder + "/config.json";
  const std::string config_text = io::read_file(config_path, kMaxConfigBytes);
  io::Sha256 sha256;
  sha256.update(std::as_bytes(std::span(config_text)));
  checkpoint.config_sha256_ = sha256.hex_digest();
  checkpoint.architecture_ = parse_architecture(config_text, config_path, checkpoint.warnings_);
  checkpoint.files_ = io::WeightFiles::open(folder);
  checkpoint.index_tensors();
  checkpoint.check_tensors();
  return checkpoint;
}

// Exporters differ in prefixes: two stored names may mean the same tensor, which is an error.
void Checkpoint::index_tensors() {
  for (const io::WeightFiles::StoredTensor& entry : files_.entries()) {
    std::string name = architecture_->canonical_name(entry.tensor->name);
    if (name.empty()) continue;
    const auto [it, inserted] = tensors_.emplace(std::move(name), entry);
    if (!inserted) {
      fail(ErrorCode::corrupt_file, "{}: duplicate tensor {}, stored as \"{}\" and \"{}\"",
           entry.file->path(), it->first, it->second.tensor->name, entry.tensor->name);
    }
  }
}

// Shapes and types against the architecture; unknown tensors are only warned about.
void Checkpoint::check_tensors() {
  const std::vector<TensorSpec> specs =
      architecture_->tensors([this](std::string_view name) { return has(name); }, folder_);
  for (const TensorSpec& spec : specs) num_parameters_ += spec.num_elements();
  for (const TensorSpec& spec : specs) {
    const auto it = tensors_.find(spec.name);
    if (it == tensors_.end()) {
      fail(
          ErrorCode::corrupt_file,
          "{}: tensor {} of shape {} is missing; check that config.json and weights belong together",
          folder_, spec.name, io::shape_text(spec.shape));
    }
    const io::TensorInfo& tensor = *it->second.tensor;
    if (tensor.shape != spec.shape) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} has shape {}, config.json requires {}",
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
  for (const io::WeightFiles::StoredTensor& entry : files_.entries()) {
    const std::string name = architecture_->canonical_name(entry.tensor->name);
    if (name.empty() || expected.contains(name)) continue;
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

bool Checkpoint::has(std::string_view name) const { return tensors_.contains(std::string(name)); }

// `toto make-model` marks its random weights; files of others have no such mark.
bool Checkpoint::trained() const {
  const std::string* value = files_.metadata("trained");
  return value == nullptr || *value != "false";
}

const io::TensorInfo& Checkpoint::info(std::string_view name) const {
  const auto it = tensors_.find(std::string(name));
  if (it == tensors_.end()) fail(ErrorCode::internal, "tensor {} was not checked", name);
  return *it->second.tensor;
}

// Values from `first` on as float32, in the order of the file.
void Checkpoint::read(std::string_view name, std::uint64_t first, std::span<float> dst) const {
  const auto it = tensors_.find(std::string(name));
  if (it == tensors_.end()) fail(ErrorCode::internal, "tensor {} was not checked", name);
  it->second.file->read_floats(*it->second.tensor, first, dst);
}

std::vector<float> Checkpoint::read(std::string_view name) const {
  std::vector<float> values(info(name).num_elements());
  read(name, 0, values);
  return values;
}

}  // namespace toto
