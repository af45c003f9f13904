// A model folder on disk, checked: config.json, and every tensor the config asks for, with its
// shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/safetensors.h"
#include "model/config.h"

namespace toto {

struct TensorSpec {
  std::string name;  // canonical: no "model." in front, MLP as mlp.0 and mlp.2
  std::vector<std::int64_t> shape;
};

// Every tensor a checkpoint of this shape holds, in the order of the forward pass.
std::vector<TensorSpec> tensor_specs(const Config& config, bool with_labels);

// Read-only; safe from several threads.
class Checkpoint {
 public:
  // Refuses missing, misshapen, doubled or non-float tensors: Error(corrupt_file) naming the
  // tensor.
  static Checkpoint open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const Config& config() const { return config_; }
  bool has_variate_labels() const { return has_labels_; }
  bool trained() const;  // false if the file's metadata says so
  const std::vector<std::string>& warnings() const { return warnings_; }
  const io::WeightFiles& files() const { return files_; }

  // Elements [first, first + dst.size()) of a tensor by its canonical name. NaN and Inf are
  // refused.
  void read(std::string_view name, std::uint64_t first, std::span<float> dst) const;
  std::vector<float> read(std::string_view name) const;
  const io::TensorInfo& info(std::string_view name) const;

 private:
  Checkpoint() = default;
  void index_tensors();
  void check_tensors();

  std::string folder_;
  Config config_;
  bool has_labels_ = false;
  std::vector<std::string> warnings_;
  io::WeightFiles files_;
  std::unordered_map<std::string, io::WeightFiles::Entry> tensors_;
};

}  // namespace toto
