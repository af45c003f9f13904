// A file in a cache folder. Whatever another user, a link, a FIFO or a killed process has put
// there: a run neither hangs on it nor reads another user's bytes, and nothing outside the folder
// changes.
//
// A file is used only if it is regular, belongs to our effective user, has one name and cannot be
// written by group or others. Ours are created with mode 0600. The cache folder itself may be a
// symbolic link; what is below may not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"
#include "io/regular_file.h"

namespace toto::io {

// One subfolder of a cache folder, open: what is done in it stays in it, even if its name leads
// elsewhere by now. Movable.
class CacheFolder {
 public:
  enum class Missing { fail, create };
  // Errors: not_found; corrupt_file if it is a link or no folder; those of AtomicFile if it cannot
  // be made.
  CacheFolder(const std::string& folder, const std::string& name, Missing missing);
  CacheFolder(CacheFolder&& other) noexcept;
  CacheFolder& operator=(CacheFolder&&) = delete;
  ~CacheFolder();

  struct Entry {  // a regular file
    std::string name;
    std::uint64_t bytes = 0;
    timespec last_use = {};  // the modification time, which every use of packed weights sets
  };
  // Other processes may add and remove files meanwhile; files that cannot be examined are skipped.
  std::vector<Entry> files() const;
  // A file, link, FIFO or empty folder; returns an errno, or 0.
  int remove(const std::string& name) const noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_; }
  int release() noexcept;

 private:
  std::string path_;
  int fd_ = -1;
};

class CacheFile {
 public:
  // <folder>/<subfolder>/<name>; nothing is opened yet.
  CacheFile(std::string folder, std::string subfolder, std::string name);
  const std::string& path() const { return path_; }

  // Errors: not_found, or corrupt_file with the reason why what is there is not used.
  RegularFile open() const;

  // Replaces whatever has the name when the result is committed. Errors are those of AtomicFile.
  AtomicFile replace() const;
  // Returns an errno, or 0.
  int remove() const noexcept;

  // The file open for writing under a lock that other processes respect. What may not be used is
  // replaced by an empty file. Closing gives up the lock.
  class Locked {
   public:
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    std::uint64_t size() const;
    bool begins_with(std::string_view text) const;
    void resize(std::uint64_t size);                              // errors as of AtomicFile
    void write_at(std::uint64_t offset, std::string_view bytes);  // the same

   private:
    friend class CacheFile;
    Locked(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
    int fd_;
    std::string path_;
  };
  // Does not wait longer than half a second for the lock: any process that may read the file can
  // hold it. Error(invalid_argument) if it cannot be had.
  Locked lock() const;

 private:
  std::string folder_, subfolder_, name_, path_;
};

}  // namespace toto::io
