// Output files appear complete or not at all: they are written under a temporary name in the same
// folder, flushed and renamed. Errors: not_found (the folder cannot be created), out_of_memory
// (disk full), invalid_argument (not writable), cancelled (interrupted while a pipe's reader was
// waited for).
//
// A killed process leaves its temporary files, `.toto-<process>-<number>.tmp`. The next process
// that writes to the same folder removes those that are more than an hour old.
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

// Asked while an output that is a pipe has no reader, or a full buffer: true ends the wait with
// Error(cancelled). Null: it waits. Thread-safe; the function may be called on any thread.
using Interrupted = bool (*)() noexcept;
void watch_interrupts(Interrupted interrupted) noexcept;

// Streaming version: call write() any number of times, then commit(). Without commit() the
// destructor removes everything. The new file keeps the old one's mode; a symbolic link stays and
// its target is replaced. An existing path that is not a regular file (/dev/null, a pipe) cannot be
// renamed over and is written directly. Not thread-safe.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  // In an open folder, whose descriptor it takes over: the new file has mode 0600 and replaces
  // whatever has the name, without looking behind a link. `path` is for messages.
  AtomicFile(int folder, std::string name, std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(std::string_view bytes);
  void write(const void* data, std::size_t size);
  void commit(Flush flush = Flush::now);

 private:
  friend class FileSet;

  void open_temporary(const std::string& folder, unsigned mode);
  void open_directly();
  void finish(Flush flush);  // flushed and closed, still under the temporary name
  // Renames the finished file; returns an errno, or 0.
  int publish() noexcept;
  bool is_direct() const { return temporary_.empty(); }
  bool wait_for_reader() const;
  void discard() noexcept;
  [[noreturn]] void discard_and_fail(std::string_view action, int error);

  std::string path_;       // as the caller named it, for messages
  std::string target_;     // the file to replace: `path_` with symbolic links resolved
  std::string temporary_;  // empty when written directly
  int folder_;             // what both names are relative to; owned unless AT_FDCWD
  int fd_ = -1;
};

// Makes a rename in `folder` survive a power cut. Best effort: the new file is already complete,
// and not every file system can flush a folder.
void flush_folder(const std::string& folder) noexcept;

// Whether writing one path would replace the other, through any spelling and symbolic links. False
// for devices and pipes. Neither file has to exist.
bool same_file(const std::string& a, const std::string& b);

// Reads a whole regular file of at most `max_bytes`; folders, FIFOs and devices are refused.
std::string read_file(const std::string& path, std::size_t max_bytes);
class RegularFile;
std::string read_file(const RegularFile& file, std::size_t max_bytes);

// A name for a temporary file, different at each call; in no folder yet unless a killed process
// left it.
std::string temporary_name();
// Throws the error that explains a failed write by its errno.
[[noreturn]] void fail_write(const std::string& path, std::string_view action, int error);

}  // namespace toto::io
