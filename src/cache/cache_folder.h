// The folder that holds packed weights: names, sizes, and what goes when it is full.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace toto::cache {

// <folder>/weights/<name>-<hash of the path>-<dtype>-<format>.packed: one file for each model
// folder and dtype, so that a changed model's entry replaces the old one.
std::string entry_path(const std::string& folder, const std::string& model_folder,
                       std::string_view dtype);

struct FolderUsage {
  std::uint64_t num_entries = 0;
  std::uint64_t bytes = 0;
};
FolderUsage usage_of(const std::string& folder);  // nothing for a folder that is not there

// Entries whose beginning or length is wrong, each with the reason; contents are compared when one
// is used. Nothing is changed.
std::vector<std::string> damaged_entries(const std::string& folder);

// Removes least recently used entries until one of `bytes` at `path` fits into `max_bytes` in all,
// and what killed processes left unfinished. False: it is larger than that by itself. What cannot
// be removed stays: another process may have been quicker, and a cache too large is no failure.
bool make_room(const std::string& folder, const std::string& path, std::uint64_t bytes,
               std::uint64_t max_bytes);

}  // namespace toto::cache
