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
constexpr std::string_view kTemporaryPrefix = ".toto-";  // as io::AtomicFile names them
constexpr std::string_view kTemporaryExtension = ".tmp";
constexpr std::chrono::hours kAbandoned{1};  // writing an entry takes seconds

fs::path weights_folder(const std::string& folder) { return fs::path(folder) / "weights"; }

struct Entry {
  fs::path path;
  std::uint64_t bytes = 0;
  fs::file_time_type last_use;  // the modification time: every use sets it
};

// Files may come and go meanwhile: what cannot be asked about is left out.
template <typename Accept>
std::vector<Entry> files_in(const fs::path& folder, const Accept& accept) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (!accept(file->path()) || !file->is_regular_file(gone)) continue;
    Entry entry{.path = file->path(), .bytes = file->file_size(gone), .last_use = {}};
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

void remove_abandoned(const fs::path& folder) {
  const auto now = fs::file_time_type::clock::now();
  for (const Entry& file : files_in(folder, is_unfinished)) {
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
  // The name is for people; the hash tells models of one name apart.
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
  for (const Entry& entry : files_in(weights_folder(folder), is_entry)) {
    ++usage.num_entries;
    usage.bytes += entry.bytes;
  }
  return usage;
}

std::vector<std::string> damaged_entries(const std::string& folder) {
  std::vector<std::string> damaged;
  for (const Entry& entry : files_in(weights_folder(folder), is_entry)) {
    try {
      // No entry was made from nothing: a sound one is stale by this key.
      const CheckedEntry found = check_header(io::RegularFile(entry.path.string()), EntryKey{});
      if (found.state == EntryState::invalid) {
        damaged.push_back(fmt::format("{}: {}", entry.path.string(), found.reason));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) damaged.emplace_back(error.what());
    }
  }
  return damaged;
}

bool make_room(const std::string& folder, const std::string& path, std::uint64_t bytes,
               std::uint64_t max_bytes) {
  remove_abandoned(weights_folder(folder));
  if (bytes > max_bytes) return false;
  std::vector<Entry> entries = files_in(weights_folder(folder), [&](const fs::path& file) {
    return is_entry(file) && file.string() != path;  // that one will be replaced
  });
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  std::uint64_t total = bytes;
  for (const Entry& entry : entries) total += entry.bytes;
  for (const Entry& entry : entries) {
    if (total <= max_bytes) break;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total -= entry.bytes;
  }
  return true;
}

}  // namespace toto::cache
