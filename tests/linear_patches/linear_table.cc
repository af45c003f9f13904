// The table of architectures with one more row. Linked in place of src/model/architectures.cc,
// which stays unused in the library.
#include <array>

#include "linear_patches/linear_patches.h"
#include "model/toto1/toto1.h"

namespace toto {

std::span<const ArchitectureRow> architectures() {
  static constexpr std::array<std::string_view, 1> kKeys = {"linear_patches"};
  static constexpr std::array<ModelPreset, 1> kPresets = {
      {{"linear", R"({"linear_patches": 1, "patch_size": 4, "block_patches": 2})"}}};
  static const std::array<ArchitectureRow, 2> rows = {{
      {"toto1", kToto1Keys, parse_toto1, kToto1Presets},
      {"linear_patches", kKeys, parse_linear_patches, kPresets},
  }};
  return rows;
}

}  // namespace toto
