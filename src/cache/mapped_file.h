// A file in memory, read-only and shared with every process that has it mapped too.
#pragma once

#include <cstddef>
#include <span>

#include "base/threads.h"
#include "io/regular_file.h"

namespace toto::cache {

class MappedFile {
 public:
  // Maps all of it and makes every page present, so that what cannot be read shows here, as an
  // Error(corrupt_file), and not later as SIGBUS. The caller knows that nobody truncates the file.
  MappedFile(const io::RegularFile& file, ThreadPool& pool);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace toto::cache
