// A memory-mapped file, read-only; its pages are shared with other processes that map it.
#pragma once

#include <cstddef>
#include <span>

#include "base/threads.h"
#include "io/regular_file.h"

namespace toto::cache {

class MappedFile {
 public:
  // Maps the whole file and reads every page in, so that a read error is an Error(corrupt_file)
  // here instead of SIGBUS later. The file must not be truncated while it is mapped.
  MappedFile(const io::RegularFile& file, ThreadPool& pool);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace toto::cache
