#include "cache/weight_cache.h"

#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "cache/cache_folder.h"
#include "io/regular_file.h"

namespace toto::cache {
namespace {

// "reason" of "path: reason".
std::string without_path(std::string_view sentence, const std::string& path) {
  if (sentence.starts_with(path + ": ")) sentence.remove_prefix(path.size() + 2);
  return std::string(sentence);
}

}  // namespace

WeightCache::WeightCache(std::string folder, std::uint64_t max_bytes, io::CacheFile file,
                         EntryKey key, Log log)
    : folder_(std::move(folder)),
      max_bytes_(max_bytes),
      file_(std::move(file)),
      key_(std::move(key)),
      log_(std::move(log)) {}

std::optional<KeptWeights> WeightCache::find(ThreadPool& pool) {
  try {
    const io::RegularFile file = file_.open();
    CheckedEntry entry = check_header(file, key_);
    if (entry.state == EntryState::stale) {
      log(fmt::format("{} was made from other weights or by another version", path()));
      return std::nullopt;
    }
    std::optional<LoadedFile> loaded;
    if (entry.state == EntryState::valid) {
      loaded.emplace(file, pool);
      entry = check_entry(loaded->bytes(), key_, pool);
    }
    if (entry.state != EntryState::valid) {
      drop(entry.reason);
      return std::nullopt;
    }
    ::futimens(file.descriptor(), nullptr);  // for make_room(); fails in a read-only folder
    log(fmt::format("read from {}", path()));
    return KeptWeights{.file = std::move(*loaded),
                       .weights_sha256 = std::move(entry.weights_sha256),
                       .sections = std::move(entry.sections)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) throw;
    if (error.code() != ErrorCode::not_found) drop(without_path(error.what(), path()));
    return std::nullopt;
  }
}

void WeightCache::drop(std::string_view reason) {
  const std::string sentence = fmt::format("cache file invalid: {}: {}", path(), reason);
  log(sentence);
  warnings_.push_back(sentence + "; it is written again");
  file_.remove();  // an empty folder, too; if it fails, keep() reports why
}

// Another process may have written the entry while this one was packing.
bool WeightCache::is_written_already() const {
  try {
    return check_header(file_.open(), key_).state == EntryState::valid;
  } catch (const Error&) {
    return false;
  }
}

void WeightCache::keep(std::string_view weights_sha256,
                       std::span<const std::span<const std::byte>> sections) {
  try {
    if (is_written_already()) {
      log(fmt::format("another process has written {}", path()));
      return;
    }
    const std::uint64_t bytes = entry_bytes(key_);
    if (!make_room(folder_, path(), bytes, max_bytes_)) {
      skip(fmt::format("they take {} bytes, the cache may take {}", bytes, max_bytes_));
      return;
    }
    write_entry(file_, key_, weights_sha256, sections);
    log(fmt::format("packed and kept in {}", path()));
  } catch (const Error& error) {
    log(fmt::format("packed, not kept: {}", error.what()));
    warnings_.push_back(fmt::format(
        "packed weights are not kept for the next start: {}; set TOTO_CACHE_DIR to another folder "
        "or use --no-cache",
        error.what()));
  }
}

void WeightCache::skip(std::string_view reason) const {
  log(fmt::format("packed, not kept: {}", reason));
}

void WeightCache::log(std::string_view sentence) const {
  if (log_) log_(fmt::format("weights: {}", sentence));
}

}  // namespace toto::cache
