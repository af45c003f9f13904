#include "model/random_model.h"

#include <algorithm>
#include <vector>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"
#include "base/random.h"
#include "io/atomic_file.h"

namespace toto {
namespace {

// Uniform in [-limit, limit), a pure function of its arguments.
float uniform(std::uint64_t seed, std::uint64_t tensor, std::uint64_t element, float limit) {
  const RandomWords words = philox4x32(
      {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(element / 4 >> 32),
       static_cast<std::uint32_t>(tensor), 0x746f746f},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const float unit = static_cast<float>(words[element % 4] >> 8) * 0x1p-24f;
  return (2 * unit - 1) * limit;
}

// Writes values in the given type; only F32, F16 and BF16 get here.
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

void make_model(const Architecture& architecture, std::uint64_t seed, io::TensorType type,
                const std::string& folder, const MakeModelHooks& hooks) {
  if (type != io::TensorType::f32 && type != io::TensorType::f16 && type != io::TensorType::bf16) {
    fail(ErrorCode::invalid_argument, "weights can be made as F32, F16 or BF16, not {}",
         io::name_of(type));
  }
  const std::vector<TensorSpec> specs =
      architecture.tensors([](std::string_view) { return false; }, folder);
  std::vector<io::TensorInfo> tensors;
  std::uint64_t total = 0;  // parameters
  tensors.reserve(specs.size());
  for (const TensorSpec& spec : specs) {
    tensors.push_back(
        {.name = architecture.stored_name(spec.name), .type = type, .shape = spec.shape});
    total += static_cast<std::uint64_t>(spec.num_elements());
  }
  // Both files are complete before either replaces an existing one.
  io::AtomicFile config_file(folder + "/config.json");
  config_file.write(architecture.config_json());
  io::SafetensorsWriter writer(
      folder + "/model.safetensors", tensors,
      {{"format", "pt"}, {"trained", "false"}, {"seed", std::to_string(seed)}});
  std::uint64_t done = 0;
  std::vector<float> values;
  for (std::size_t t = 0; t < specs.size(); ++t) {
    const float limit = specs[t].limit;
    const std::uint64_t count = tensors[t].num_elements();
    constexpr std::uint64_t kChunk = std::uint64_t{1} << 18;
    for (std::uint64_t first = 0; first < count; first += kChunk) {
      if (hooks.cancelled && hooks.cancelled()) {
        fail(ErrorCode::cancelled, "interrupted; nothing was written");
      }
      values.resize(std::min(kChunk, count - first));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = limit == 0 ? specs[t].fill : uniform(seed, t, first + i, limit);
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
