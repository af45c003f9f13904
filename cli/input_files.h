// Files and folders of series as the commands take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace toto::cli {

// The .csv and .jsonl files of a folder, without the files this run writes. Error(not_found) if
// there is none.
std::vector<std::string> files_of_folder(const std::string& folder,
                                         const std::vector<std::optional<std::string>>& outputs);

}  // namespace toto::cli
