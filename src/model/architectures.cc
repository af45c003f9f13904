// The table of all architectures: the only file outside their folders that names them. Test builds
// link another table in its place.
#include <array>

#include "model/architecture.h"
#include "model/toto1/toto1.h"
#include "model/toto2/toto2.h"

namespace toto {

std::span<const ArchitectureRow> architectures() {
  static const std::array<ArchitectureRow, 2> rows = {{
      {"toto1", kToto1Keys, parse_toto1, kToto1Presets},
      {"toto2", kToto2Keys, parse_toto2, kToto2Presets},
  }};
  return rows;
}

}  // namespace toto
