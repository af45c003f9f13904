#include "io/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "io/regular_file.h"

namespace toto::io {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;            // the kernel's own limit
constexpr std::size_t kMinChunk = 4096;  // files under /proc report a size of 0
constexpr std::string_view kTemporaryPrefix = ".toto-";
constexpr std::string_view kTemporaryExtension = ".tmp";
constexpr std::time_t kAbandoned = 3600;  // seconds; writing a file takes only a few
constexpr int kPauseMs = 20;              // between two looks for a reader or an interrupt

std::atomic<Interrupted> interrupted_hook = nullptr;

bool was_interrupted() {
  const Interrupted hook = interrupted_hook.load();
  return hook != nullptr && hook();
}

// Resolves the symbolic links a path ends in; the last one may point to a file that does not exist.
fs::path follow_links(const std::string& path) {
  fs::path target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(target, error))) return target;
    const fs::path link = fs::read_symlink(target, error);
    if (error) fail_write(path, "follow the link", error.value());
    target = target.parent_path() / link;  // an absolute link replaces all of it
  }
  fail_write(path, "follow the link", ELOOP);
}

// openat() that continues after a signal.
int open_retrying(int folder, const char* path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::openat(folder, path, flags | O_CLOEXEC | O_NOCTTY, mode);  // less the process's umask
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// Removes the temporary file unless it is young, another user's, or still being written: a writer
// holds a lock on it.
void remove_if_abandoned(int folder, const char* name) {
  const int fd = ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status{};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
      std::time(nullptr) - status.st_mtim.tv_sec > kAbandoned &&
      ::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    ::unlinkat(folder, name, 0);
  }
  ::close(fd);
}

// Removes what killed processes left in a folder; once per process and folder, because a folder may
// receive a hundred thousand files. `path` is the folder's, whichever descriptor leads to it.
void sweep(int base, const std::string& folder, const std::string& path) {
  const char* name = folder.empty() ? "." : folder.c_str();
  struct stat status{};
  if (::fstatat(base, name, &status, 0) != 0) return;
  {
    constexpr std::size_t kMostFolders = 1024;
    static std::mutex mutex;
    static std::set<std::tuple<dev_t, ino_t, std::string>> swept;
    const std::lock_guard lock(mutex);
    if (swept.size() >= kMostFolders) swept.clear();
    if (!swept.emplace(status.st_dev, status.st_ino, path).second) return;
  }
  const int fd = ::openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = fd < 0 ? nullptr : ::fdopendir(fd);  // owns fd if it succeeds
  if (entries == nullptr) {
    if (fd >= 0) ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view found = entry->d_name;
    if (found.starts_with(kTemporaryPrefix) && found.ends_with(kTemporaryExtension)) {
      remove_if_abandoned(fd, entry->d_name);
    }
  }
  ::closedir(entries);
}

}  // namespace

void watch_interrupts(Interrupted interrupted) noexcept { interrupted_hook.store(interrupted); }

// Maps an errno to the error code and the next step that fits it.
void fail_write(const std::string& path, std::string_view action, int error) {
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

void flush_folder(const std::string& folder) noexcept {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

std::string temporary_name() {
  // Not derived from the target's name, which may already have the maximum length.
  static std::atomic<unsigned> counter = 0;
  return fmt::format("{}{}-{}{}", kTemporaryPrefix, ::getpid(), counter++, kTemporaryExtension);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), folder_(AT_FDCWD) {
  if (path_.empty() || path_.ends_with('/') || path_.find('\0') != std::string::npos) {
    fail(ErrorCode::invalid_argument, "\"{}\": not a file name; expected the path of a file",
         path_.c_str());
  }
  struct stat status{};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail_write(path_, "write the file", errno);
  if (exists && S_ISDIR(status.st_mode)) fail_write(path_, "write the file", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    open_directly();
    return;
  }
  // A rename needs no permission on the file itself, but a write-protected file must stay.
  if (exists && ::access(path_.c_str(), W_OK) != 0) fail_write(path_, "replace the file", errno);
  target_ = follow_links(path_).string();
  const fs::path folder = fs::path(target_).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) fail_write(path_, "make its folder", error.value());
  open_temporary(folder.string(), 0666);
  if (exists && ::fchmod(fd_, status.st_mode & 07777) != 0) {
    discard_and_fail("set the file's mode", errno);
  }
}

AtomicFile::AtomicFile(int folder, std::string name, std::string path)
    : path_(std::move(path)), target_(std::move(name)), folder_(folder) {
  open_temporary({}, 0600);
}

// Opening a pipe waits for its reader. Without O_NONBLOCK the wait would go on after a signal whose
// handler only remembers it.
void AtomicFile::open_directly() {
  while (true) {
    fd_ = open_retrying(AT_FDCWD, path_.c_str(), O_WRONLY | O_NONBLOCK, 0);
    if (fd_ >= 0) return;
    if (errno != ENXIO) fail_write(path_, "open for writing", errno);
    struct stat status{};
    if (::stat(path_.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
      fail_write(path_, "open for writing", ENXIO);  // a socket
    }
    if (was_interrupted()) {
      fail(ErrorCode::cancelled, "{}: interrupted while waiting for a reader of the pipe", path_);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
}

// `folder` is relative to folder_.
void AtomicFile::open_temporary(const std::string& folder, unsigned mode) {
  int error = 0;
  try {
    sweep(folder_, folder, fs::path(path_).parent_path().string());
    std::string name;
    do {
      name = (fs::path(folder) / temporary_name()).string();
      fd_ = open_retrying(folder_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode);
    } while (fd_ < 0 && errno == EEXIST);  // left behind by a killed process with the same id
    error = fd_ < 0 ? errno : 0;
    if (error == 0) temporary_ = std::move(name);
  } catch (...) {
    discard();  // the destructor does not run when a constructor throws
    throw;
  }
  if (error != 0) discard_and_fail("make a file in its folder", error);
  ::flock(fd_, LOCK_EX | LOCK_NB);  // tells sweep() of other processes that it is in use
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
  temporary_.clear();
  if (folder_ >= 0) ::close(folder_);
  folder_ = AT_FDCWD;
}

void AtomicFile::discard_and_fail(std::string_view action, int error) {
  discard();
  fail_write(path_, action, error);
}

void AtomicFile::write(std::string_view bytes) { write(bytes.data(), bytes.size()); }

// False if the process was interrupted.
bool AtomicFile::wait_for_reader() const {
  pollfd wanted{.fd = fd_, .events = POLLOUT, .revents = 0};
  while (!was_interrupted()) {
    if (::poll(&wanted, 1, kPauseMs) != 0) return true;  // writing tells what is wrong, if anything
  }
  return false;
}

void AtomicFile::write(const void* data, std::size_t size) {
  if (fd_ < 0) fail(ErrorCode::internal, "{}: written to after its end", path_);
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd_, at, size);
    if (written >= 0) {
      at += written;
      size -= static_cast<std::size_t>(written);
    } else if (errno == EAGAIN && is_direct()) {
      if (wait_for_reader()) continue;
      discard();
      fail(ErrorCode::cancelled, "{}: interrupted while waiting for the reader of the pipe", path_);
    } else if (errno != EINTR) {
      discard_and_fail("write", errno);
    }
  }
}

void AtomicFile::finish(Flush flush) {
  if (fd_ < 0) fail(ErrorCode::internal, "{}: committed after its end", path_);
  const bool wait = flush == Flush::now && !is_direct();
  if (wait && ::fsync(fd_) != 0) discard_and_fail("flush to disk", errno);
  // Some file systems report a full disk only here. An interrupted close has closed the file.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) discard_and_fail("close", errno);
}

int AtomicFile::publish() noexcept {
  if (is_direct()) return 0;
  if (::renameat(folder_, temporary_.c_str(), folder_, target_.c_str()) != 0) return errno;
  temporary_.clear();
  return 0;
}

void AtomicFile::commit(Flush flush) {
  finish(flush);
  const bool direct = is_direct();
  const std::string folder = fs::path(target_).parent_path().string();
  if (const int error = publish(); error != 0) {
    discard_and_fail("rename the finished file", error);
  }
  if (flush == Flush::now && !direct && folder_ == AT_FDCWD) flush_folder(folder);
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
  return read_file(RegularFile(path), max_bytes);
}

std::string read_file(const RegularFile& file, std::size_t max_bytes) {
  const auto check_size = [&](std::uint64_t size) {
    if (size <= max_bytes) return;
    fail(ErrorCode::corrupt_file, "{}: holds {} bytes or more, expected at most {}", file.path(),
         size, max_bytes);
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
