#include "tables/series_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace toto::tables {

namespace fs = std::filesystem;

// Sorted by name, so that the order does not depend on the file system.
std::vector<std::string> series_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string extension = lower_case(at->path().extension().string());
    if (name.front() == '.' || (extension != ".csv" && extension != ".jsonl")) continue;
    if (std::error_code ignored; at->is_directory(ignored)) continue;
    files.push_back((fs::path(folder) / name).string());
  }
  if (error) {
    const bool absent = error == std::errc::no_such_file_or_directory;
    fail(absent ? ErrorCode::not_found : ErrorCode::corrupt_file,
         "{}: the folder cannot be read: {}", folder, error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_regular_file(const std::string& path) {
  std::error_code ignored;
  return path != "-" && fs::is_regular_file(path, ignored);
}

}  // namespace toto::tables
