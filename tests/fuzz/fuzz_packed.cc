// Any bytes are refused, or give the sections asked for, aligned and inside the file.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cache/packed_file.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace toto::cache;
  static toto::ThreadPool pool(1);
  static const EntryKey key{.digest = std::string(kDigestLength, '1'), .sizes = {100, 0, 5000}};
  std::vector<std::uint64_t> aligned(size / 8 + 1);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  const auto bytes = std::as_bytes(std::span(aligned)).first(size);
  const CheckedEntry entry = check_entry(bytes, key, pool);
  check(entry.reason.empty() == (entry.state != EntryState::invalid));
  if (entry.state != EntryState::valid) {
    check(entry.sections.empty());
    return 0;
  }
  check(size == entry_bytes(key) && entry.sections.size() == key.sizes.size());
  for (std::size_t i = 0; i < key.sizes.size(); ++i) {
    check(entry.sections[i].size() == key.sizes[i]);
    const std::ptrdiff_t offset = entry.sections[i].data() - bytes.data();
    check(offset % static_cast<std::ptrdiff_t>(kSectionAlignment) == 0);
    check(static_cast<std::uint64_t>(offset) + key.sizes[i] <= size);
  }
  return 0;
}
