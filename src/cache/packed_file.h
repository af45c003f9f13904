// A file of packed weights, laid out so that a process maps it and computes with it as it is.
//
//   header    magic, format, sizes, what it was made from; a checksum of its own
//   sections  each at a multiple of kSectionAlignment, zeros between them
//   trailer   eight bytes: the checksum of everything before
//
// An entry is never changed in place: it is written under another name and renamed, or unlinked.
// Whoever has the old one mapped keeps it, whole, so no reader can meet the end of a file that
// shrank (SIGBUS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "io/regular_file.h"

namespace toto::cache {

inline constexpr std::size_t kSectionAlignment = 4096;
inline constexpr std::uint32_t kPackedFormat = 1;
inline constexpr std::size_t kDigestLength = 64;  // hexadecimal digits of a SHA-256

// What an entry has to be to serve.
struct EntryKey {
  std::string digest;                // of all that decides its bytes; kDigestLength digits
  std::vector<std::uint64_t> sizes;  // of its sections, in bytes
};
std::uint64_t entry_bytes(const EntryKey& key);  // the size of such a file

enum class EntryState {
  valid,
  stale,    // sound, but made from something else
  invalid,  // not what was once written
};
struct CheckedEntry {
  EntryState state = EntryState::invalid;
  std::string reason = {};  // why it is invalid, to follow the file's name
  std::string weights_sha256 = {};
  std::vector<std::span<const std::byte>> sections = {};  // into the bytes given; if valid
};

// Reads an entry as if it were hostile; every byte of it is covered by one of the checksums.
// `file` is aligned to eight bytes.
CheckedEntry check_entry(std::span<const std::byte> file, const EntryKey& wanted, ThreadPool& pool);
// The same without a look at sections and trailer: whether it is worth mapping, or writing again.
CheckedEntry check_header(const io::RegularFile& file, const EntryKey& wanted);
// Whether every byte is what was once written, whatever it was made from: stale or invalid. Reads
// the file in pieces.
CheckedEntry check_contents(const io::RegularFile& file);

// Section by section, nothing is copied as a whole. Errors are those of io::AtomicFile.
void write_entry(const std::string& path, const EntryKey& key, std::string_view weights_sha256,
                 std::span<const std::span<const std::byte>> sections);

}  // namespace toto::cache
