#include "cache_folder.h"

#include <cstdlib>

namespace toto::cli {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const fs::path own = variable("TOTO_CACHE_DIR"); !own.empty()) return own;
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "toto";
  return variable("HOME") / ".cache" / "toto";
}

}  // namespace toto::cli
