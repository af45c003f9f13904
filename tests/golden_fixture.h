// Goldens to break: a safetensors file taken apart and put together again, copies of committed
// goldens, and a small one made from nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "io_fixture.h"

namespace toto::validate {

inline constexpr const char* kCommittedGoldens = TOTO_SOURCE_DIR "/tests/golden";

// The tensors of a file in memory, written back where they came from by save().
class TensorFile {
 public:
  struct Tensor {
    io::TensorInfo info;
    std::vector<std::byte> bytes;

    template <typename T>
    std::vector<T> values() const {
      std::vector<T> result(bytes.size() / sizeof(T));
      std::memcpy(result.data(), bytes.data(), bytes.size());
      return result;
    }
    template <typename T>
    void set(const std::vector<T>& values) {
      bytes.resize(values.size() * sizeof(T));
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    // Calls change(value) for every value.
    template <typename T, typename Change>
    void edit(const Change& change) {
      std::vector<T> all = values<T>();
      for (T& value : all) change(value);
      set(all);
    }
  };

  explicit TensorFile(std::string path) : path_(std::move(path)) {
    if (!std::filesystem::exists(path_)) return;
    const io::Safetensors file = io::Safetensors::open(path_);
    for (const io::TensorInfo& info : file.tensors()) {
      Tensor& tensor = tensors.emplace_back(Tensor{info, std::vector<std::byte>(info.bytes)});
      file.read_bytes(info, tensor.bytes);
    }
    metadata = file.metadata();
  }

  Tensor& operator[](std::string_view name) {
    for (Tensor& tensor : tensors) {
      if (tensor.info.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + std::string(name));
  }

  template <typename T>
  void add(std::string name, io::TensorType type, std::vector<std::int64_t> shape,
           const std::vector<T>& values) {
    Tensor tensor;
    tensor.info.name = std::move(name);
    tensor.info.type = type;
    tensor.info.shape = std::move(shape);
    tensor.set(values);
    tensors.push_back(std::move(tensor));
  }

  void remove(std::string_view name) {
    std::erase_if(tensors, [name](const Tensor& tensor) { return tensor.info.name == name; });
  }

  void set_metadata(std::string_view key, std::string_view value) {
    std::erase_if(metadata, [key](const auto& entry) { return entry.first == key; });
    metadata.emplace_back(key, value);
  }

  void save() const {
    std::vector<io::TensorInfo> infos;
    infos.reserve(tensors.size());
    for (const Tensor& tensor : tensors) infos.push_back(tensor.info);
    io::SafetensorsWriter writer(path_, infos, metadata);
    for (const Tensor& tensor : tensors) writer.append(tensor.bytes.data(), tensor.bytes.size());
    writer.commit();
  }

  std::vector<Tensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;

 private:
  std::string path_;
};

// A copy of a committed golden, to be changed.
inline std::string copied_golden(const io::TemporaryFolder& folder, const std::string& name) {
  std::filesystem::copy(std::string(kCommittedGoldens) + "/" + name, folder / name);
  return folder / name;
}

// The sizes of a golden that no network ever answered: enough to be read, not to be run.
struct MadeGolden {
  static constexpr std::int64_t kBatch = 2, kVariates = 3, kTime = 5, kHorizon = 6, kPatch = 4,
                                kK = 2;

  static std::vector<double> ramp(std::int64_t count, double first) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values.push_back(first + 0.5 * double(i));
    return values;
  }

  static void write(const std::string& folder) {
    using io::TensorType;
    std::filesystem::create_directories(folder);
    io::put(folder + "/config.json", "{}");
    TensorFile weights(folder + "/model.safetensors");
    weights.add<float>("model.weight", TensorType::f32, {2}, {1, 2});
    weights.save();

    TensorFile file(folder + "/case.safetensors");
    const std::vector<std::int64_t> input = {kBatch, kVariates, kTime};
    const std::vector<double> series = ramp(kBatch * kVariates * kTime, -3);
    std::vector<std::int64_t> ids;
    std::vector<std::uint8_t> mask;
    for (std::size_t i = 0; i < series.size(); ++i) {
      ids.push_back(static_cast<std::int64_t>(i) / kTime);
      mask.push_back(i % 7 == 0 ? 0 : 1);
    }
    file.add("series", TensorType::f32, input, std::vector<float>(series.begin(), series.end()));
    file.add("padding_mask", TensorType::u8, input, mask);
    file.add("id_mask", TensorType::i64, input, ids);
    const std::vector<double> future = ramp(kBatch * kHorizon, 50);
    file.add("future_exogenous", TensorType::f32, {kBatch, 1, kHorizon},
             std::vector<float>(future.begin(), future.end()));
    const std::vector<std::int64_t> affine = {kBatch, kVariates, kPatch};
    const std::vector<std::int64_t> components = {kBatch, kVariates, kPatch, kK};
    const std::vector<std::int64_t> mean = {kBatch, kVariates, kHorizon};
    const std::pair<const char*, const std::vector<std::int64_t>*> outputs[] = {
        {"loc", &affine},
        {"scale", &affine},
        {"df", &components},
        {"component_loc", &components},
        {"component_scale", &components},
        {"logits", &components},
        {"mean", &mean},
        {"mean_no_cache", &mean}};
    double first = 3;
    for (const auto& [name, shape] : outputs) {
      std::int64_t count = 1;
      for (const std::int64_t n : *shape) count *= n;
      const std::vector<double> values = ramp(count, first += 0.3);
      const std::string output = name;
      file.add("f32." + output, TensorType::f32, *shape,
               std::vector<float>(values.begin(), values.end()));
      file.add("f64." + output, TensorType::f64, *shape, values);
    }
    file.set_metadata("horizon", std::to_string(kHorizon));
    file.set_metadata("num_exogenous", "1");
    file.set_metadata("variate_labels", "false");
    file.save();
  }
};

// A change to the weights of a model.
struct WeightChange {
  const char* name;
  std::function<void(TensorFile&)> change;
};

// The name of the first or last tensor whose name contains `part`.
inline std::string layer_tensor(const TensorFile& file, std::string_view part, bool last) {
  std::string found;
  for (const TensorFile::Tensor& tensor : file.tensors) {
    if (tensor.info.name.find(part) == std::string::npos) continue;
    if (found.empty() || (last ? tensor.info.name > found : tensor.info.name < found)) {
      found = tensor.info.name;
    }
  }
  return found;
}

// Changes that move every output of the network.
inline std::vector<WeightChange> weight_changes() {
  const auto zero = [](float& weight) { weight = 0; };
  return {
      {"largest weight of an attention output matrix by 1e-2",
       [](TensorFile& file) {
         TensorFile::Tensor& tensor = file[layer_tensor(file, "attention.wO.weight", false)];
         std::vector<float> weights = tensor.values<float>();
         *std::max_element(weights.begin(), weights.end(),
                           [](float a, float b) { return std::abs(a) < std::abs(b); }) += 1e-2F;
         tensor.set(weights);
       }},
      {"a whole tensor by 1e-3",
       [](TensorFile& file) {
         file[layer_tensor(file, "mlp.0.weight", true)].edit<float>(
             [](float& weight) { weight *= 1.001F; });
       }},
      {"two tensors swapped",
       [](TensorFile& file) {
         std::swap(file[layer_tensor(file, "attention.wO.weight", false)].bytes,
                   file[layer_tensor(file, "attention.wO.weight", true)].bytes);
       }},
      {"the last layer zeroed",
       [zero](TensorFile& file) {
         for (const char* part :
              {"attention.wO.weight", "attention.wO.bias", "mlp.2.weight", "mlp.2.bias"}) {
           file[layer_tensor(file, part, true)].edit<float>(zero);
         }
       }},
      {"a norm by 1e-4",
       [](TensorFile& file) {
         file[layer_tensor(file, "norm1.scale", false)].edit<float>(
             [](float& weight) { weight *= 1.0001F; });
       }},
      {"one output bias",
       [](TensorFile& file) {
         file[layer_tensor(file, "unembed.bias", true)].edit<float>(
             [](float& weight) { weight += 1e-4F; });
       }},
  };
}

}  // namespace toto::validate
