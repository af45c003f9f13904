// The table of all architectures: the only file outside their folders that names them. Test builds
// link another table in its place.
#include <array>

#include "model/architecture.h"
#include "model/toto1/toto1.h"

namespace toto {

std::span<const ArchitectureRow> architectures() {
  static const std::array<ArchitectureRow, 1> rows = {{
      {"toto1", kToto1Keys, parse_toto1, kToto1Presets},
  }};
  return rows;
}

}  // namespace toto
