// Folders and lists of files as input.
#pragma once

#include <string>
#include <vector>

namespace toto::tables {

// The files of a folder that hold series by their names, .csv and .jsonl in any case, sorted; not
// hidden ones, nor what lies in folders below. Error(not_found, corrupt_file) if it cannot be read.
std::vector<std::string> series_files(const std::string& folder);

// Whether what is behind a path can be read a second time: no pipe, no standard input.
bool is_regular_file(const std::string& path);

}  // namespace toto::tables
