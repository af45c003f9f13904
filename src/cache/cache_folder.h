// The folder of packed weights: names, sizes and eviction. Any number of processes may use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/cache_file.h"

namespace toto::cache {

// <folder>/weights/<name>-<hash of the path>-<dtype>-<format>.packed: one file per model folder and
// dtype, so the entry of a changed model replaces the old one.
io::CacheFile entry_file(const std::string& folder, const std::string& model_folder,
                         std::string_view dtype);

struct FolderUsage {
  std::uint64_t num_entries = 0;
  std::uint64_t bytes = 0;
};
FolderUsage usage_of(const std::string& folder);  // zero for a missing folder

// Finds entries that cannot be used, damaged or refused by io::CacheFile, with the reason for each.
// Contents are compared with their checksums up to `max_bytes` in total, most recently used first;
// of the others only header and length are checked. Changes nothing.
struct EntriesCheck {
  std::vector<std::string> damaged;
  std::uint64_t unread_bytes = 0;
};
EntriesCheck check_entries(const std::string& folder, std::uint64_t max_bytes);

// Removes least recently used entries until an entry of `bytes` at `path` fits into `max_bytes` in
// total. False if the entry alone is larger than that.
// Entries that cannot be removed stay: another process may have removed them, and an oversized
// cache is not an error.
bool make_room(const std::string& folder, const std::string& path, std::uint64_t bytes,
               std::uint64_t max_bytes);

}  // namespace toto::cache
