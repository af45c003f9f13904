#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "io/regular_file.h"

namespace toto::io {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;            // the kernel's own limit
constexpr std::size_t kMinChunk = 4096;  // files under /proc report a size of 0

// Maps an errno to the error code and the next step that fits it.
[[noreturn]] void fail_for(const std::string& path, std::string_view action, int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      fail(ErrorCode::out_of_memory, "{}: cannot {}: {}; free some space or write elsewhere", path,
           action, reason);
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      fail(ErrorCode::out_of_memory, "{}: cannot {}: {}", path, action, reason);
    case ENOENT:
    case ENOTDIR:
      fail(ErrorCode::not_found, "{}: cannot {}: {}; check the path", path, action, reason);
    default:
      fail(ErrorCode::invalid_argument, "{}: cannot {}: {}; choose a path that can be written",
           path, action, reason);
  }
}

// Resolves the symbolic links a path ends in; the last one may point to a file that does not exist.
fs::path follow_links(const std::string& path) {
  fs::path target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(target, error))) return target;
    const fs::path link = fs::read_symlink(target, error);
    if (error) fail_for(path, "follow the link", error.value());
    target = target.parent_path() / link;  // an absolute link replaces all of it
  }
  fail_for(path, "follow the link", ELOOP);
}

// Makes a rename survive a power cut. Best effort: the new file is already complete, and not every
// file system can flush a folder.
void flush_folder(const fs::path& folder) noexcept {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// open() that continues after a signal.
int open_retrying(const char* path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);  // less the process's umask
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  if (path_.empty() || path_.ends_with('/') || path_.find('\0') != std::string::npos) {
    fail(ErrorCode::invalid_argument, "\"{}\": not a file name; expected the path of a file",
         path_.c_str());
  }
  struct stat status{};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail_for(path_, "write the file", errno);
  if (exists && S_ISDIR(status.st_mode)) fail_for(path_, "write the file", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    fd_ = open_retrying(path_.c_str(), O_WRONLY);
    if (fd_ < 0) fail_for(path_, "open for writing", errno);
    return;
  }
  // A rename needs no permission on the file itself, but a write-protected file must stay.
  if (exists && ::access(path_.c_str(), W_OK) != 0) fail_for(path_, "replace the file", errno);
  target_ = follow_links(path_).string();
  open_temporary();
  if (exists && ::fchmod(fd_, status.st_mode & 07777) != 0) {
    discard_and_fail("set the file's mode", errno);
  }
}

void AtomicFile::open_temporary() {
  const fs::path folder = fs::path(target_).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) fail_for(path_, "make its folder", error.value());
  // Not derived from the target's name, which may already have the maximum length.
  static std::atomic<unsigned> counter = 0;
  do {
    temporary_ = (folder / fmt::format(".toto-{}-{}.tmp", ::getpid(), counter++)).string();
    fd_ = open_retrying(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL);
  } while (fd_ < 0 && errno == EEXIST);  // left behind by a killed process with the same id
  if (fd_ < 0) fail_for(path_, "make a file in its folder", errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::discard_and_fail(std::string_view action, int error) {
  discard();
  fail_for(path_, action, error);
}

void AtomicFile::write(std::string_view bytes) { write(bytes.data(), bytes.size()); }

void AtomicFile::write(const void* data, std::size_t size) {
  if (fd_ < 0) fail(ErrorCode::internal, "{}: written to after its end", path_);
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd_, at, size);
    if (written >= 0) {
      at += written;
      size -= static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      discard_and_fail("write", errno);
    }
  }
}

void AtomicFile::commit(Flush flush) {
  if (fd_ < 0) fail(ErrorCode::internal, "{}: committed after its end", path_);
  const bool wait = flush == Flush::now && !temporary_.empty();
  if (wait && ::fsync(fd_) != 0) discard_and_fail("flush to disk", errno);
  // Some file systems report a full disk only here. An interrupted close has closed the file.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) discard_and_fail("close", errno);
  if (temporary_.empty()) return;
  const fs::path folder = fs::path(target_).parent_path();  // after the rename nothing may fail
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    discard_and_fail("rename the finished file", errno);
  }
  temporary_.clear();
  if (flush == Flush::now) flush_folder(folder);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  const fs::file_status status = fs::status(a, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return false;
  if (fs::equivalent(a, b, error)) return true;
  if (fs::exists(status) || fs::exists(b, error)) return false;
  // Files that do not exist yet have no identity; compare their resolved paths instead.
  const auto place = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(follow_links(path), error), error);
  };
  return place(a) == place(b);
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const RegularFile file(path);
  const auto check_size = [&](std::uint64_t size) {
    if (size <= max_bytes) return;
    fail(ErrorCode::corrupt_file, "{}: holds {} bytes or more, expected at most {}", path, size,
         max_bytes);
  };
  check_size(file.size());
  std::string text;
  std::size_t done = 0;
  do {  // the file may have grown since it was opened; doubling keeps this linear
    text.resize(std::max({2 * done, static_cast<std::size_t>(file.size()) + 1, kMinChunk}));
    done += file.read_at(done, std::as_writable_bytes(std::span(text)).subspan(done));
    check_size(done);
  } while (done == text.size());
  text.resize(done);
  return text;
}

}  // namespace toto::io
