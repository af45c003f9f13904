// Folders as input.
#pragma once

#include <string>
#include <vector>

namespace toto::tables {

// The .csv and .jsonl files of a folder (extension case-insensitive), sorted; without hidden files
// and subfolders. Error(not_found, corrupt_file) if it cannot be read.
std::vector<std::string> series_files(const std::string& folder);

// Whether a path can be read a second time: false for pipes and standard input.
bool is_regular_file(const std::string& path);

}  // namespace toto::tables
