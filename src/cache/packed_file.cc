#include "cache/packed_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/memory.h"
#include "io/sha256.h"

namespace toto::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are little-endian");

constexpr std::array<char, 8> kMagic = {'t', 'o', 't', 'o', 'p', 'a', 'c', 'k'};
constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes summed per task
using Digest = io::Sha256::Digest;
constexpr std::size_t kTrailer = sizeof(Digest);

struct Header {  // followed by the sizes of the sections
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kPackedFormat;
  std::uint32_t num_sections = 0;
  std::uint64_t file_size = 0;
  std::array<char, kDigestLength> key = {};
  std::array<char, kDigestLength> weights_sha256 = {};
  Digest checksum = {};  // of everything above
};
static_assert(std::has_unique_object_representations_v<Header>);
static_assert(sizeof(Header) % sizeof(std::uint64_t) == 0);

std::uint64_t header_bytes(std::uint64_t num_sections) {
  return round_up(sizeof(Header) + num_sections * sizeof(std::uint64_t), kSectionAlignment);
}

// The offset of each section, then that of the trailer.
std::vector<std::uint64_t> section_offsets(const EntryKey& key) {
  std::vector<std::uint64_t> offsets = {header_bytes(key.sizes.size())};
  for (const std::uint64_t size : key.sizes) {
    offsets.push_back(offsets.back() + round_up(size, kSectionAlignment));
  }
  return offsets;
}

Digest header_checksum(const Header& header) {
  io::Sha256 hash;
  hash.update(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
  return hash.digest();
}

// The header and the table of section sizes, padded to whole pages.
std::vector<std::byte> make_header(const EntryKey& key, std::string_view weights_sha256) {
  if (key.digest.size() != kDigestLength || weights_sha256.size() != kDigestLength) {
    fail(ErrorCode::internal, "digests of {} and {} digits, expected {}", key.digest.size(),
         weights_sha256.size(), kDigestLength);
  }
  Header header;
  header.num_sections = static_cast<std::uint32_t>(key.sizes.size());
  header.file_size = entry_bytes(key);
  std::copy(key.digest.begin(), key.digest.end(), header.key.begin());
  std::copy(weights_sha256.begin(), weights_sha256.end(), header.weights_sha256.begin());
  header.checksum = header_checksum(header);
  std::vector<std::byte> pages(header_bytes(key.sizes.size()));
  std::memcpy(pages.data(), &header, sizeof header);
  const auto sizes = std::as_bytes(std::span(key.sizes));
  std::copy(sizes.begin(), sizes.end(), pages.begin() + sizeof header);
  return pages;
}

// Writes sections to the file and sums their chunks without copying them.
class SummingWriter {
 public:
  explicit SummingWriter(io::AtomicFile& file) : file_(file) {}

  void write(std::span<const std::byte> section) {  // padded with zeros to whole pages
    const std::size_t over = section.size() % kSectionAlignment;
    write_pages(section.first(section.size() - over));
    if (over == 0) return;
    std::array<std::byte, kSectionAlignment> page = {};
    std::ranges::copy(section.last(over), page.begin());
    write_pages(page);
  }
  Digest finish() {
    if (in_chunk_ > 0) end_chunk();
    return sums_.digest();
  }

 private:
  // Chunks of the checksum end every kChunk bytes of the file, wherever sections end.
  void write_pages(std::span<const std::byte> pages) {
    while (!pages.empty()) {
      const auto part = pages.first(std::min(pages.size(), kChunk - in_chunk_));
      chunk_.update(part);
      file_.write(part.data(), part.size());
      pages = pages.subspan(part.size());
      in_chunk_ += part.size();
      if (in_chunk_ == kChunk) end_chunk();
    }
  }
  void end_chunk() {
    sums_.update(chunk_.digest());
    in_chunk_ = 0;
  }

  io::AtomicFile& file_;
  io::Sha256 chunk_, sums_;
  std::size_t in_chunk_ = 0;
};

Digest checksum(std::span<const std::byte> chunk) noexcept {
  io::Sha256 hash;
  hash.update(chunk);
  return hash.digest();
}

// Sums chunks on all threads, then combines the sums in order: the same result as SummingWriter.
Digest checksum_of_chunks(std::span<const std::byte> bytes, ThreadPool& pool) {
  std::vector<Digest> sums((bytes.size() + kChunk - 1) / kChunk);
  pool.run(static_cast<int>(sums.size()), [&](int i, int) {
    const auto rest = bytes.subspan(static_cast<std::size_t>(i) * kChunk);
    sums[static_cast<std::size_t>(i)] = checksum(rest.first(std::min(rest.size(), kChunk)));
  });
  return checksum(std::as_bytes(std::span(sums)));
}

CheckedEntry invalid(std::string reason) {
  return {.state = EntryState::invalid, .reason = std::move(reason)};
}

// `start` is the beginning of the file, possibly shorter than a header.
CheckedEntry check_header(std::span<const std::byte> start, std::uint64_t file_size,
                          const EntryKey& wanted) {
  Header header;
  if (start.size() < sizeof header) {
    return invalid(fmt::format("it holds {} bytes, expected {}", file_size, entry_bytes(wanted)));
  }
  std::memcpy(&header, start.data(), sizeof header);
  if (header.magic != kMagic) return invalid("it does not hold packed weights");
  if (header.format != kPackedFormat) {
    return invalid(fmt::format("its format is {}, expected {}", header.format, kPackedFormat));
  }
  if (header_checksum(header) != header.checksum) {
    return invalid("its header does not match its checksum");
  }
  if (header.file_size != file_size) {
    return invalid(fmt::format("it holds {} bytes, expected {}", file_size, header.file_size));
  }
  if (!std::equal(header.key.begin(), header.key.end(), wanted.digest.begin(),
                  wanted.digest.end())) {
    return {.state = EntryState::stale};
  }
  if (file_size != entry_bytes(wanted) || header.num_sections != wanted.sizes.size()) {
    return invalid("its sections are not those of this model");
  }
  CheckedEntry entry{.state = EntryState::valid};
  entry.weights_sha256.assign(header.weights_sha256.begin(), header.weights_sha256.end());
  return entry;
}

}  // namespace

std::uint64_t entry_bytes(const EntryKey& key) { return section_offsets(key).back() + kTrailer; }

CheckedEntry check_header(const io::RegularFile& file, const EntryKey& wanted) {
  std::array<std::byte, sizeof(Header)> start;
  const std::size_t size = file.read_at(0, start);
  return check_header(std::span(start).first(size), file.size(), wanted);
}

CheckedEntry check_contents(const io::RegularFile& file) {
  CheckedEntry entry = check_header(file, EntryKey{});
  if (entry.state == EntryState::invalid) return entry;
  if (file.size() % kSectionAlignment != kTrailer) {
    return invalid(
        fmt::format("it holds {} bytes, expected whole pages and {} bytes", file.size(), kTrailer));
  }
  const std::uint64_t end = file.size() - kTrailer;
  std::vector<std::byte> chunk(kChunk);
  io::Sha256 sums;
  Digest expected = {};
  std::uint64_t offset = 0;
  const auto read = [&](std::span<std::byte> bytes) {
    const bool whole = file.read_at(offset, bytes) == bytes.size();
    offset += bytes.size();
    return whole;
  };
  while (offset < end) {
    const std::span<std::byte> part = std::span(chunk).first(std::min(kChunk, end - offset));
    if (!read(part)) return invalid("it was truncated while it was read");
    sums.update(checksum(part));
  }
  if (!read(expected) || sums.digest() != expected) {
    return invalid("its contents do not match their checksum");
  }
  return entry;
}

CheckedEntry check_entry(std::span<const std::byte> file, const EntryKey& wanted,
                         ThreadPool& pool) {
  CheckedEntry entry = check_header(file, file.size(), wanted);
  if (entry.state != EntryState::valid) return entry;
  const std::vector<std::uint64_t> offsets = section_offsets(wanted);
  Digest expected = {};
  std::memcpy(expected.data(), file.data() + offsets.back(), sizeof expected);
  if (checksum_of_chunks(file.first(offsets.back()), pool) != expected) {
    return invalid("its contents do not match their checksum");
  }
  const auto sizes = std::as_bytes(std::span(wanted.sizes));
  if (!std::equal(sizes.begin(), sizes.end(), file.begin() + sizeof(Header))) {
    return invalid("its sections are not those of this model");
  }
  for (std::size_t i = 0; i < wanted.sizes.size(); ++i) {
    entry.sections.push_back(file.subspan(offsets[i], wanted.sizes[i]));
  }
  return entry;
}

void write_entry(const io::CacheFile& file, const EntryKey& key, std::string_view weights_sha256,
                 std::span<const std::span<const std::byte>> sections) {
  const std::vector<std::byte> header = make_header(key, weights_sha256);
  io::AtomicFile written = file.replace();
  SummingWriter writer(written);
  writer.write(header);
  for (const std::span<const std::byte> section : sections) writer.write(section);
  const Digest sum = writer.finish();
  written.write(sum.data(), sum.size());
  written.commit(io::Flush::later);
}

}  // namespace toto::cache
