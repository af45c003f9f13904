#include "model/architecture.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace toto {

void PackedWeights::map(std::span<const std::span<const std::byte>> arrays) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (i >= arrays.size() || arrays[i].size() != arrays_[i]->bytes()) {
      fail(ErrorCode::internal, "packed array {} has {} bytes, expected {}", i,
           i < arrays.size() ? arrays[i].size() : 0, arrays_[i]->bytes());
    }
    arrays_[i]->map(arrays[i].data());
  }
}

std::vector<std::span<const std::byte>> PackedWeights::arrays() const {
  std::vector<std::span<const std::byte>> arrays;
  arrays.reserve(arrays_.size());
  for (const AnyWeightArray* array : arrays_) arrays.push_back(array->as_bytes());
  return arrays;
}

std::vector<std::uint64_t> PackedWeights::array_sizes() const {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(arrays_.size());
  for (const AnyWeightArray* array : arrays_) sizes.push_back(array->bytes());
  return sizes;
}

std::size_t PackedWeights::bytes() const {
  const std::vector<std::uint64_t> sizes = array_sizes();
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

void Network::read_block(ScalerState& state, std::span<const float> values, float* rows,
                         double* loc, double* scale) const noexcept {
  const std::size_t patch = shape_.patch;
  for (std::size_t i = 0; i < values.size(); i += patch) {
    read_patch(state, &values[i], rows + i / patch * shape_.input_width, loc, scale);
  }
}
void Network::read_known(ScalerState& state, const float* values, float* row, double* loc,
                         double* scale) const noexcept {
  read_patch(state, values, row, loc, scale);
}
int Network::leading_constant(bool /*exogenous*/) const noexcept { return 0; }
int Network::query_constant() const noexcept { return 0; }
void Network::position_factors(int /*position*/, int /*last*/, int /*first_last*/,
                               float* /*dst*/) const noexcept {}
void Network::multiply(Product /*product*/, int /*layer*/, int /*rows*/,
                       const Workspace& /*workspace*/,
                       const Schedule& /*schedule*/) const noexcept {}
void Network::use(const Schedules& /*schedules*/) noexcept {}

std::int64_t TensorSpec::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::unique_ptr<Architecture> parse_architecture(std::string_view text, std::string_view what,
                                                 std::vector<std::string>& warnings) {
  const io::Json root = io::parse_json(text, what);
  if (root.kind != io::Json::Kind::object) {
    fail(ErrorCode::corrupt_file, "{}: expected a JSON object, found {}", what,
         io::described(root));
  }
  const auto num_keys = [&root](const ArchitectureRow& row) {
    return std::ranges::count_if(
        row.keys, [&root](std::string_view key) { return root.find(key) != nullptr; });
  };
  const auto rows = architectures();
  const auto best = std::ranges::max_element(rows, {}, num_keys);
  return best->parse(root, what, warnings);
}

const TraceArray* Trace::find(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(arrays, [name](const TraceArray& array) { return array.name == name; });
  return found != arrays.end() ? &*found : nullptr;
}

}  // namespace toto
