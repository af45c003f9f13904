// Reading files someone else may have put there: only regular ones, never blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace toto::io {

// What changes when a file is written to, replaced or touched.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_ns = 0;  // since 1970; anyone may set it
  std::int64_t changed_ns = 0;   // of contents, mode, owner or stamp; only the system sets it
  std::uint32_t owner = 0;
  bool operator==(const FileStamp&) const = default;
};

// Why open() said no, by its errno: a clear line for whoever named the path.
[[noreturn]] void fail_open(const std::string& path, int error);

// A regular file open for reading. Movable. Reading is const and safe from several threads.
class RegularFile {
 public:
  RegularFile() = default;  // no file: any read fails
  // Error: not_found, or corrupt_file for a folder, FIFO, device or a file that cannot be read.
  explicit RegularFile(const std::string& path);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;
  ~RegularFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  FileStamp stamp() const;                      // as it is now
  int descriptor() const { return fd_; }        // for mapping it; stays this object's

  // Fills `dst` from byte `offset` on; returns how many bytes there were, fewer only at the end.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> dst) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace toto::io
