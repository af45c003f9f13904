// A file of packed weights, laid out so that the kernels use it as it is, once it is in memory.
//
//   header    magic, format, sizes, the key it was made from; its own checksum
//   sections  each at a multiple of kSectionAlignment, zeros between them
//   trailer   the checksum of everything before: the SHA-256 of the SHA-256 of every 1 MB
//
// An entry is never changed in place: it is written under another name and renamed, or unlinked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "io/cache_file.h"

namespace toto::cache {

inline constexpr std::size_t kSectionAlignment = 4096;
inline constexpr std::uint32_t kPackedFormat = 2;
inline constexpr std::size_t kDigestLength = 64;  // hexadecimal digits of a SHA-256

// What an entry must match to be used.
struct EntryKey {
  std::string digest;                // of everything its bytes depend on; kDigestLength digits
  std::vector<std::uint64_t> sizes;  // of its sections, in bytes
};
std::uint64_t entry_bytes(const EntryKey& key);  // the size of such a file

enum class EntryState {
  valid,
  stale,    // intact, but made from other weights or by another version
  invalid,  // damaged, truncated or not an entry
};
struct CheckedEntry {
  EntryState state = EntryState::invalid;
  std::string reason = {};  // why it is invalid; printed after the file's name
  std::string weights_sha256 = {};
  std::vector<std::span<const std::byte>> sections = {};  // views of `file`; if valid
};

// Checks an untrusted entry; every byte is covered by one of the checksums.
CheckedEntry check_entry(std::span<const std::byte> file, const EntryKey& wanted, ThreadPool& pool);
// Checks the header only: whether the entry is worth reading, or must be written again.
CheckedEntry check_header(const io::RegularFile& file, const EntryKey& wanted);
// Checks every byte, whatever the entry was made from; returns stale or invalid. Reads the file in
// chunks of 1 MB.
CheckedEntry check_contents(const io::RegularFile& file);

// Writes the sections one by one without copying them. Errors are those of io::AtomicFile.
void write_entry(const io::CacheFile& file, const EntryKey& key, std::string_view weights_sha256,
                 std::span<const std::span<const std::byte>> sections);

}  // namespace toto::cache
