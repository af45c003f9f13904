#include "validate/zero_weights.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "io/safetensors.h"

namespace toto::validate {
namespace {

bool is_matrix(const io::TensorInfo& tensor) {
  const bool floats = tensor.type == io::TensorType::f32 || tensor.type == io::TensorType::f16 ||
                      tensor.type == io::TensorType::bf16;
  return floats && tensor.shape.size() >= 2 && tensor.num_elements() > 0;
}

// Stops at the first other number: of an intact model almost nothing is read.
bool is_zero(const io::Safetensors& file, const io::TensorInfo& tensor) {
  std::array<float, 4096> some;
  const std::uint64_t count = tensor.num_elements();
  for (std::uint64_t first = 0; first < count; first += some.size()) {
    const std::span<float> part =
        std::span(some).first(std::min<std::uint64_t>(some.size(), count - first));
    file.read_floats(tensor, first, part);
    if (std::any_of(part.begin(), part.end(), [](float x) { return x != 0; })) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> zero_matrices(const std::string& folder) {
  const io::WeightFiles weights = io::WeightFiles::open(folder);
  std::vector<std::string> names;
  for (const auto& [file, tensor] : weights.entries()) {
    if (is_matrix(*tensor) && is_zero(*file, *tensor)) names.push_back(tensor->name);
  }
  return names;
}

std::vector<std::string> zero_warnings(const std::string& folder) {
  const std::vector<std::string> names = zero_matrices(folder);
  if (names.empty()) return {};
  constexpr std::size_t kNamed = 8;
  const std::size_t named = std::min(names.size(), kNamed);
  return {fmt::format(
      "{} weight matri{} only zeros: {}{}; expected other numbers: a layer was lost, or the file "
      "is damaged",
      names.size(), names.size() == 1 ? "x holds" : "ces hold",
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      names.size() > named ? fmt::format(" and {} more", names.size() - named) : "")};
}

}  // namespace toto::validate
