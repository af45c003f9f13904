// Reads untrusted files: regular files only, without blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace toto::io {

// Identity and times of a file. Writing, replacing or touching the file changes at least one.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_ns = 0;  // since 1970; programs can set it
  std::int64_t changed_ns = 0;   // of contents, mode, owner or times; only the kernel sets it
  std::uint32_t owner = 0, mode = 0, num_links = 0;  // mode: permissions only
  bool operator==(const FileStamp&) const = default;
};

// Throws the error that explains a failed open() by its errno.
[[noreturn]] void fail_open(const std::string& path, int error);

// A regular file open for reading; owns the descriptor. Movable. Reading is const and thread-safe.
class RegularFile {
 public:
  RegularFile() = default;  // no file: any read fails
  // Error: not_found, or corrupt_file for a folder, FIFO, device or a file that cannot be read.
  explicit RegularFile(const std::string& path);
  // Takes over `fd`, which is closed on an error, too. `path` is for messages.
  RegularFile(int fd, std::string path);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;
  ~RegularFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  FileStamp stamp() const;                      // as it is now
  int descriptor() const { return fd_; }        // for mmap; still owned by this object

  // Reads from byte `offset` into `dst`; returns the bytes read, fewer only at the end of the file.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> dst) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace toto::io
