// Where the disk cache belongs.
#pragma once

#include <filesystem>

namespace toto::cli {

// TOTO_CACHE_DIR, else toto in XDG_CACHE_HOME, else in ~/.cache: the conventions of the desktop.
std::filesystem::path cache_folder();

}  // namespace toto::cli
