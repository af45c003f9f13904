// The one place that knows every architecture. A new one is a folder and a row here.
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
