#include "cache/cache_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cache/packed_file.h"
#include "io/sha256.h"

namespace toto::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".packed";
constexpr const char* kSubfolder = "weights";

// The entries and the folder they are in; none if there is no such folder.
struct Entries {
  std::optional<io::CacheFolder> folder;
  std::vector<io::CacheFolder::Entry> files;
};

enum class Order { newest_first, oldest_first };  // by last use

Entries entries_of(const std::string& folder, Order order) {
  Entries entries;
  try {
    entries.folder.emplace(folder, kSubfolder, io::CacheFolder::Missing::fail);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) throw;
    return entries;
  }
  entries.files = entries.folder->files();
  std::erase_if(entries.files, [](const auto& file) { return !file.name.ends_with(kExtension); });
  const auto time = [](const io::CacheFolder::Entry& file) {
    return std::pair(file.last_use.tv_sec, file.last_use.tv_nsec);
  };
  std::sort(entries.files.begin(), entries.files.end(), [&](const auto& a, const auto& b) {
    return order == Order::newest_first ? time(a) > time(b) : time(a) < time(b);
  });
  return entries;
}

}  // namespace

io::CacheFile entry_file(const std::string& folder, const std::string& model_folder,
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
  return {folder, kSubfolder,
          fmt::format("{}-{}-{}-{}{}", name, hash.hex_digest().substr(0, kHashDigits), dtype,
                      kPackedFormat, kExtension)};
}

FolderUsage usage_of(const std::string& folder) {
  FolderUsage usage;
  for (const auto& entry : entries_of(folder, Order::newest_first).files) {
    ++usage.num_entries;
    usage.bytes += entry.bytes;
  }
  return usage;
}

EntriesCheck check_entries(const std::string& folder, std::uint64_t max_bytes) {
  EntriesCheck check;
  for (const auto& entry : entries_of(folder, Order::newest_first).files) {
    const bool read = entry.bytes <= max_bytes;
    if (read) {
      max_bytes -= entry.bytes;
    } else {
      check.unread_bytes += entry.bytes;
    }
    try {
      const io::CacheFile place(folder, kSubfolder, entry.name);
      const io::RegularFile file = place.open();
      // No entry has an empty key, so an intact one is reported as stale.
      const CheckedEntry found = read ? check_contents(file) : check_header(file, EntryKey{});
      if (found.state == EntryState::invalid) {
        check.damaged.push_back(fmt::format("{}: {}", place.path(), found.reason));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) check.damaged.emplace_back(error.what());
    }
  }
  return check;
}

bool make_room(const std::string& folder, const std::string& path, std::uint64_t bytes,
               std::uint64_t max_bytes) {
  if (bytes > max_bytes) return false;
  Entries entries = entries_of(folder, Order::oldest_first);
  const std::string own = fs::path(path).filename().string();  // will be replaced
  std::erase_if(entries.files, [&](const auto& file) { return file.name == own; });
  std::uint64_t total = bytes;
  for (const auto& entry : entries.files) total += entry.bytes;
  for (const auto& entry : entries.files) {
    if (total <= max_bytes || !entries.folder) break;
    entries.folder->remove(entry.name);
    total -= entry.bytes;
  }
  return true;
}

}  // namespace toto::cache
