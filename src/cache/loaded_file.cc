#include "cache/loaded_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"

namespace toto::cache {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;  // bytes per task

enum class Failure { none, truncated, unreadable };

// Tasks may not throw.
Failure read_pieces(const io::RegularFile& file, std::span<std::byte> bytes, ThreadPool& pool) {
  std::atomic<Failure> failure = Failure::none;
  pool.run(static_cast<int>((bytes.size() + kPiece - 1) / kPiece), [&](int i, int) {
    const std::size_t offset = static_cast<std::size_t>(i) * kPiece;
    const auto piece = bytes.subspan(offset, std::min(kPiece, bytes.size() - offset));
    try {
      if (file.read_at(offset, piece) != piece.size()) failure.store(Failure::truncated);
    } catch (const std::exception&) {
      failure.store(Failure::unreadable);
    }
  });
  return failure.load();
}

}  // namespace

LoadedFile::LoadedFile(const io::RegularFile& file, ThreadPool& pool) {
  const std::size_t size = file.size();
  if (size == 0) return;  // mmap refuses it
  // Not AlignedBytes, which would write all of it once more on one thread.
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {  // NOLINT(performance-no-int-to-ptr): the system's own constant
    fail(ErrorCode::out_of_memory, "cannot allocate {:.1f} MB for {}; free memory",
         static_cast<double>(size) / 1e6, file.path());
  }
  bytes_ = {static_cast<std::byte*>(start), size};
  ::madvise(start, size, MADV_HUGEPAGE);
  const Failure failure = read_pieces(file, bytes_, pool);
  if (failure == Failure::none) return;
  ::munmap(bytes_.data(), bytes_.size());  // the destructor does not run after a throw
  fail(ErrorCode::corrupt_file, "{}: {}", file.path(),
       failure == Failure::truncated ? "it was truncated while it was read" : "cannot be read");
}

LoadedFile::LoadedFile(LoadedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

LoadedFile& LoadedFile::operator=(LoadedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

LoadedFile::~LoadedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace toto::cache
