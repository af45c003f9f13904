#include "cache/mapped_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace toto::cache {
namespace {

// The kernel populates one piece per task, on all threads. 16 MiB pieces take half the time of 1
// MiB ones and about as long as touching the pages, which could raise SIGBUS.
constexpr std::size_t kPiece = std::size_t{16} << 20;

// Reads every page in; returns an errno, or 0.
int make_present(std::span<std::byte> bytes, ThreadPool& pool) {
  std::atomic<int> failure = 0;
  pool.run(static_cast<int>((bytes.size() + kPiece - 1) / kPiece), [&](int i, int) {
    const auto rest = bytes.subspan(static_cast<std::size_t>(i) * kPiece);
    int result = 0;
    do {
      result = ::madvise(rest.data(), std::min(rest.size(), kPiece), MADV_POPULATE_READ);
    } while (result != 0 && errno == EINTR);
    // EINVAL: a kernel before 5.14, where pages are read when they are touched.
    if (result != 0 && errno != EINVAL) failure.store(errno);
  });
  return failure.load();
}

}  // namespace

MappedFile::MappedFile(const io::RegularFile& file, ThreadPool& pool) {
  const std::size_t size = file.size();
  if (size == 0) return;  // mmap refuses an empty file
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (start == MAP_FAILED) {  // NOLINT(performance-no-int-to-ptr): the system's own constant
    fail(ErrorCode::corrupt_file, "{}: cannot be mapped: {}", file.path(),
         std::generic_category().message(errno));
  }
  bytes_ = {static_cast<std::byte*>(start), size};
  if (const int error = make_present(bytes_, pool); error != 0) {
    ::munmap(bytes_.data(), bytes_.size());  // the destructor does not run after a throw
    fail(ErrorCode::corrupt_file, "{}: cannot be read: {}", file.path(),
         std::generic_category().message(error));
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace toto::cache
