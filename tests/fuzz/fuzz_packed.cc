// Any bytes are refused, or give the sections asked for, aligned and inside the file.
#include <cstdint>
#include <cstring>

#include "cache/packed_file.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using toto::require;
  using namespace toto::cache;
  static toto::ThreadPool pool(1);
  static const EntryKey key{.digest = std::string(kDigestLength, '1'), .sizes = {100, 0, 5000}};
  std::vector<std::uint64_t> aligned(size / 8 + 1);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  const auto bytes = std::as_bytes(std::span(aligned)).first(size);
  const CheckedEntry entry = check_entry(bytes, key, pool);
  require(entry.reason.empty() == (entry.state != EntryState::invalid));
  if (entry.state != EntryState::valid) {
    require(entry.sections.empty());
    return 0;
  }
  require(size == entry_bytes(key) && entry.sections.size() == key.sizes.size());
  for (std::size_t i = 0; i < key.sizes.size(); ++i) {
    require(entry.sections[i].size() == key.sizes[i]);
    const std::ptrdiff_t offset = entry.sections[i].data() - bytes.data();
    require(offset % static_cast<std::ptrdiff_t>(kSectionAlignment) == 0);
    require(static_cast<std::uint64_t>(offset) + key.sizes[i] <= size);
  }
  return 0;
}
