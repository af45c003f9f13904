// Reading files someone else may have put there: only regular ones, never blocking, never mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace toto::io {

// A regular file open for reading. Movable. Reading is const and safe from several threads.
class RegularFile {
 public:
  RegularFile() = default;  // no file: any read fails
  // Error: not_found, or corrupt_file for a folder, FIFO, device or a file that cannot be read.
  explicit RegularFile(const std::string& path);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;
  ~RegularFile();

  std::uint64_t size() const { return size_; }  // when it was opened

  // Fills `dst` from byte `offset` on; returns how many bytes there were, fewer only at the end.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> dst) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace toto::io
