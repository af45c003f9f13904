#include "model/make_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/bf16.h"
#include "base/error.h"
#include "base/random.h"
#include "io/atomic_file.h"
#include "model/checkpoint.h"

namespace toto {
namespace {

// Uniform in [-limit, limit): like torch.nn.Linear's initialisation, limit = 1 / sqrt(fan in).
float uniform(std::uint64_t seed, std::uint64_t tensor, std::uint64_t element, float limit) {
  const RandomWords words = philox4x32(
      {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(element / 4 >> 32),
       static_cast<std::uint32_t>(tensor), 0x746f746f},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const float unit = static_cast<float>(words[element % 4] >> 8) * 0x1p-24f;
  return (2 * unit - 1) * limit;
}

float limit_of(const TensorSpec& spec, const Config& config) {
  const bool is_weight = spec.shape.size() == 2;
  const double fan_in = is_weight ? static_cast<double>(spec.shape[1]) : config.embed_dim;
  return static_cast<float>(1 / std::sqrt(fan_in));
}

// Round to nearest, ties to even, for |x| < 65520, denormals included.
std::uint16_t to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude < 0x38800000) {  // below 2^-14: let the addition of 0.5 round to units of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

void append_as(io::TensorType type, const std::vector<float>& values,
               io::SafetensorsWriter& writer) {
  if (type == io::TensorType::f32) {
    writer.append(values.data(), values.size() * sizeof(float));
    return;
  }
  std::vector<std::uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(),
                 type == io::TensorType::bf16 ? to_bf16 : to_f16);
  writer.append(halves.data(), halves.size() * sizeof(std::uint16_t));
}

}  // namespace

Config base_config() {
  Config config;
  config.patch_size = 64;
  config.embed_dim = 768;
  config.num_layers = 12;
  config.num_heads = 12;
  config.mlp_hidden_dim = 3072;
  config.spacewise_every_n_layers = 12;
  config.spacewise_first = false;
  config.num_components = 24;
  return config;
}

Config mini_config() {
  Config config = base_config();
  config.patch_size = 16;
  config.embed_dim = 128;
  config.num_layers = 4;
  config.num_heads = 4;
  config.mlp_hidden_dim = 256;
  config.spacewise_every_n_layers = 4;
  config.num_components = 8;
  return config;
}

void make_model(const Config& config, std::uint64_t seed, io::TensorType type,
                const std::string& folder, const MakeModelHooks& hooks) {
  if (type != io::TensorType::f32 && type != io::TensorType::f16 && type != io::TensorType::bf16) {
    fail(ErrorCode::invalid_argument, "weights can be made as F32, F16 or BF16, not {}",
         io::name_of(type));
  }
  const std::vector<TensorSpec> specs = tensor_specs(config, false);
  std::vector<io::TensorInfo> tensors;
  tensors.reserve(specs.size());
  for (const TensorSpec& spec : specs) {
    tensors.push_back({.name = "model." + spec.name, .type = type, .shape = spec.shape});
  }
  // Both are written to the end before either takes its place.
  io::AtomicFile config_file(folder + "/config.json");
  config_file.write(config_json(config));
  io::SafetensorsWriter writer(
      folder + "/model.safetensors", tensors,
      {{"format", "pt"}, {"trained", "false"}, {"seed", std::to_string(seed)}});
  const auto total = static_cast<std::uint64_t>(config.num_parameters(false));
  std::uint64_t done = 0;
  std::vector<float> values;
  for (std::size_t t = 0; t < specs.size(); ++t) {
    const bool is_norm = specs[t].name.ends_with(".scale");
    const float limit = limit_of(specs[t], config);
    const std::uint64_t count = tensors[t].num_elements();
    constexpr std::uint64_t kChunk = std::uint64_t{1} << 18;
    for (std::uint64_t first = 0; first < count; first += kChunk) {
      if (hooks.cancelled && hooks.cancelled()) {
        fail(ErrorCode::cancelled, "interrupted; nothing was written");
      }
      values.resize(std::min(kChunk, count - first));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = is_norm ? 1.0f : uniform(seed, t, first + i, limit);
      }
      append_as(type, values, writer);
      done += values.size();
      if (hooks.progress) hooks.progress(done, total);
    }
  }
  writer.commit();
  config_file.commit();
}

}  // namespace toto
