// Output files appear complete or not at all: they are written under a temporary name in the same
// folder, flushed and renamed. Errors: not_found (the folder cannot be created), out_of_memory
// (disk full), invalid_argument (not writable).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace toto::io {

// Creates missing parent folders. On failure an existing file stays unchanged and the temporary one
// is removed.
void write_file_atomically(const std::string& path, std::string_view bytes);

// Whether commit() waits for the disk. `later` is for files that can be recreated and that carry a
// checksum: a power cut may leave one with holes.
enum class Flush { now, later };

// Streaming version: call write() any number of times, then commit(). Without commit() the
// destructor removes everything. The new file keeps the old one's mode; a symbolic link stays and
// its target is replaced. An existing path that is not a regular file (/dev/null, a pipe) cannot be
// renamed over and is written directly. Not thread-safe.
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
  std::string target_;     // the file to replace: `path_` with symbolic links resolved
  std::string temporary_;  // empty when written directly
  int fd_ = -1;
};

// Whether writing one path would replace the other, through any spelling and symbolic links. False
// for devices and pipes. Neither file has to exist.
bool same_file(const std::string& a, const std::string& b);

// Reads a whole regular file of at most `max_bytes`; folders, FIFOs and devices are refused.
std::string read_file(const std::string& path, std::size_t max_bytes);

}  // namespace toto::io
