// Files that belong together: all of them are new, or all of them are old.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"

namespace toto::io {

// Every file is written and flushed under a temporary name when it is added; commit() renames them
// one after the other, in the order they were added, with nothing in between. Any error before or
// during commit() leaves all old files (of a file system without hard links: any error before the
// first rename). kill -9 leaves a mix only between two renames, so the file that the others are
// read for is added last. Errors are those of AtomicFile. Not thread-safe.
class FileSet {
 public:
  using Sink = std::function<void(std::string_view)>;

  FileSet() = default;
  ~FileSet();
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  void add(const std::string& path, const std::function<void(const Sink&)>& write);
  void add(const std::string& path, std::string_view text);
  void commit();

 private:
  struct Item {
    std::unique_ptr<AtomicFile> file;
    std::string old;  // another name of the file that is replaced; empty: none
  };
  void keep_old(Item& item) const;
  void restore(std::size_t count) noexcept;
  void forget_old() noexcept;

  std::vector<Item> items_;
};

}  // namespace toto::io
