// A file in separate memory, aligned to pages. It is read, not mapped: touching a mapped page
// ends the process with SIGBUS if the file was cut meanwhile.
#pragma once

#include <cstddef>
#include <span>

#include "base/threads.h"
#include "io/regular_file.h"

namespace toto::cache {

class LoadedFile {
 public:
  // Reads on all threads. Errors: corrupt_file if it cannot be read or has become shorter,
  // out_of_memory.
  LoadedFile(const io::RegularFile& file, ThreadPool& pool);
  LoadedFile(LoadedFile&& other) noexcept;
  LoadedFile& operator=(LoadedFile&& other) noexcept;
  ~LoadedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace toto::cache
