// Output files appear whole or not at all: written to a temporary name in the same folder, flushed,
// renamed. Errors are toto::Error: not_found (no such folder and it cannot be made), out_of_memory
// (disk full), invalid_argument (not writable).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace toto::io {

// Creates missing parent folders. On any failure the old file, if any, is untouched and the
// temporary one removed.
void write_file_atomically(const std::string& path, std::string_view bytes);

// Whether commit() waits for the disk. What can be made again, and shows when it is torn, need not:
// a power cut may then leave a file of the right name with holes.
enum class Flush { now, later };

// The same for output that does not fit in memory: write() as often as needed, then commit().
// Destroyed without commit(), it leaves nothing behind. The new file keeps the old one's mode; a
// symbolic link stays one, its target is replaced. What already exists and is no regular file
// (/dev/null, a pipe) cannot be renamed over and is written directly.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(std::string_view bytes);
  void write(const void* data, std::size_t size);
  void commit(Flush flush = Flush::now);

 private:
  void open_temporary();
  void discard() noexcept;
  [[noreturn]] void discard_and_fail(std::string_view action, int error);

  std::string path_;       // as the caller named it, for messages
  std::string target_;     // what is replaced: `path_` with symbolic links followed
  std::string temporary_;  // empty when written directly
  int fd_ = -1;
};

// Whether two paths, however spelled and through whatever links, lead to one file: writing the one
// would replace the other. Not so for devices and pipes, which hold nothing. Neither need exist.
bool same_file(const std::string& a, const std::string& b);

// The whole of a regular file, at most `max_bytes`; folders, FIFOs and devices are refused.
std::string read_file(const std::string& path, std::size_t max_bytes);

}  // namespace toto::io
