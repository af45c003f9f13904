#include "cli/input_files.h"

#include <algorithm>

#include "base/error.h"
#include "io/atomic_file.h"
#include "tables/series_folder.h"

namespace toto::cli {

std::vector<std::string> files_of_folder(const std::string& folder,
                                         const std::vector<std::optional<std::string>>& outputs) {
  std::vector<std::string> files = tables::series_files(folder);
  std::erase_if(files, [&](const std::string& file) {
    return std::ranges::any_of(outputs, [&](const std::optional<std::string>& output) {
      return output && io::same_file(file, *output);
    });
  });
  if (files.empty()) {
    fail(ErrorCode::not_found,
         "{}: the folder holds no .csv or .jsonl file, expected at least one; folders below it are "
         "not searched",
         folder);
  }
  return files;
}

}  // namespace toto::cli
