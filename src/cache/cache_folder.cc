#include "cache/cache_folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "cache/packed_file.h"
#include "io/sha256.h"

namespace toto::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".packed";
constexpr std::string_view kTemporaryPrefix = ".toto-";  // of io::AtomicFile
constexpr std::string_view kTemporaryExtension = ".tmp";
constexpr std::chrono::hours kAbandoned{1};  // writing an entry takes only seconds

fs::path weights_folder(const std::string& folder) { return fs::path(folder) / "weights"; }

struct CachedFile {
  fs::path path;
  std::uint64_t bytes = 0;
  fs::file_time_type last_use;  // the modification time, which every use sets
};

// Other processes may add and remove files meanwhile; files that cannot be examined are skipped.
template <typename Accept>
std::vector<CachedFile> files_in(const fs::path& folder, const Accept& accept) {
  std::vector<CachedFile> entries;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (!accept(file->path()) || !file->is_regular_file(gone)) continue;
    CachedFile entry{.path = file->path(), .bytes = file->file_size(gone), .last_use = {}};
    if (!gone) entry.last_use = file->last_write_time(gone);
    if (!gone) entries.push_back(std::move(entry));
  }
  return entries;
}

bool is_entry(const fs::path& path) { return path.extension() == kExtension; }

bool is_unfinished(const fs::path& path) {
  return path.filename().string().starts_with(kTemporaryPrefix) &&
         path.extension() == kTemporaryExtension;
}

// Removes temporary files that no process can still be writing.
void remove_abandoned(const fs::path& folder) {
  const auto now = fs::file_time_type::clock::now();
  for (const CachedFile& file : files_in(folder, is_unfinished)) {
    std::error_code ignored;
    if (now - file.last_use > kAbandoned) fs::remove(file.path, ignored);
  }
}

}  // namespace

std::string entry_path(const std::string& folder, const std::string& model_folder,
                       std::string_view dtype) {
  std::error_code error;
  fs::path model = fs::weakly_canonical(fs::absolute(model_folder, error), error);
  if (error) model = model_folder;
  if (!model.has_filename()) model = model.parent_path();
  // The name is for people; the hash distinguishes models with the same name.
  constexpr std::size_t kMostOfName = 64;
  constexpr std::size_t kHashDigits = 16;
  std::string name = model.filename().string().substr(0, kMostOfName);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '.' || c == '-');
      },
      '_');
  io::Sha256 hash;
  hash.update(std::as_bytes(std::span(model.native())));
  return (weights_folder(folder) / fmt::format("{}-{}-{}-{}{}", name,
                                               hash.hex_digest().substr(0, kHashDigits), dtype,
                                               kPackedFormat, kExtension))
      .string();
}

FolderUsage usage_of(const std::string& folder) {
  FolderUsage usage;
  for (const CachedFile& entry : files_in(weights_folder(folder), is_entry)) {
    ++usage.num_entries;
    usage.bytes += entry.bytes;
  }
  return usage;
}

EntriesCheck check_entries(const std::string& folder, std::uint64_t max_bytes) {
  std::vector<CachedFile> entries = files_in(weights_folder(folder), is_entry);
  std::sort(entries.begin(), entries.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.last_use > b.last_use; });
  EntriesCheck check;
  for (const CachedFile& entry : entries) {
    const bool read = entry.bytes <= max_bytes;
    if (read) {
      max_bytes -= entry.bytes;
    } else {
      check.unread_bytes += entry.bytes;
    }
    try {
      const io::RegularFile file(entry.path.string());
      // No entry has an empty key, so an intact one is reported as stale.
      const CheckedEntry found = read ? check_contents(file) : check_header(file, EntryKey{});
      if (found.state == EntryState::invalid) {
        check.damaged.push_back(fmt::format("{}: {}", entry.path.string(), found.reason));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) check.damaged.emplace_back(error.what());
    }
  }
  return check;
}

bool make_room(const std::string& folder, const std::string& path, std::uint64_t bytes,
               std::uint64_t max_bytes) {
  remove_abandoned(weights_folder(folder));
  if (bytes > max_bytes) return false;
  std::vector<CachedFile> entries = files_in(weights_folder(folder), [&](const fs::path& file) {
    return is_entry(file) && file.string() != path;  // that one will be replaced
  });
  std::sort(entries.begin(), entries.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.last_use < b.last_use; });
  std::uint64_t total = bytes;
  for (const CachedFile& entry : entries) total += entry.bytes;
  for (const CachedFile& entry : entries) {
    if (total <= max_bytes) break;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total -= entry.bytes;
  }
  return true;
}

}  // namespace toto::cache
