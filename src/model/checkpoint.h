// A checked model folder: config.json, and every tensor its architecture requires.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/safetensors.h"
#include "model/architecture.h"

namespace toto {

// Immutable after open(); thread-safe.
class Checkpoint {
 public:
  // Error(corrupt_file), naming the tensor, for tensors that are missing, duplicate, of the wrong
  // shape or not float.
  static Checkpoint open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const Architecture& architecture() const { return *architecture_; }
  bool has(std::string_view name) const;  // whether a tensor of this canonical name exists
  std::int64_t num_parameters() const { return num_parameters_; }
  bool trained() const;  // false if the file's metadata says so
  const std::string& config_sha256() const { return config_sha256_; }  // of config.json
  // May outlive the checkpoint.
  std::shared_ptr<const Architecture> shared_architecture() const { return architecture_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const io::WeightFiles& files() const { return files_; }

  // Elements [first, first + dst.size()) of a tensor, by canonical name. NaN and Inf are
  // Error(corrupt_file).
  void read(std::string_view name, std::uint64_t first, std::span<float> dst) const;
  std::vector<float> read(std::string_view name) const;
  const io::TensorInfo& info(std::string_view name) const;

 private:
  Checkpoint() = default;
  void index_tensors();
  void check_tensors();

  std::string folder_;
  std::shared_ptr<const Architecture> architecture_;
  std::int64_t num_parameters_ = 0;
  std::string config_sha256_;
  std::vector<std::string> warnings_;
  io::WeightFiles files_;
  std::unordered_map<std::string, io::WeightFiles::StoredTensor> tensors_;
};

}  // namespace toto
