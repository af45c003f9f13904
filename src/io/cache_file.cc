#include "io/cache_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace toto::io {
namespace {

namespace fs = std::filesystem;

constexpr int kLockTries = 50;
constexpr std::chrono::milliseconds kLockPause{10};  // an append holds the lock for less than 1 ms
constexpr int kReplaceTries = 8;                     // of files that come back as fast as they go

// Why an open file may not be used; empty if it may.
std::string refusal(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (status.st_uid != ::geteuid()) return "it belongs to another user";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("group or others may write it (mode {:04o})", status.st_mode & 07777);
  }
  if (status.st_nlink > 1) return fmt::format("it has {} names, expected one", status.st_nlink);
  return {};
}

[[noreturn]] void fail_link(const std::string& path, std::string_view expected) {
  fail(ErrorCode::corrupt_file, "{}: is a symbolic link, expected a {}", path, expected);
}

bool is_link(int folder, const std::string& name) {
  struct stat status{};
  return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode);
}

}  // namespace

// -------------------------------------------------------------------------------------- the folder

CacheFolder::CacheFolder(const std::string& folder, const std::string& name, Missing missing)
    : path_((fs::path(folder) / name).string()) {
  std::error_code error;
  if (missing == Missing::create && fs::create_directories(folder, error)) {
    ::chmod(folder.c_str(), 0700);  // a umask of 002 would let the group exchange files
  }
  if (error) fail_write(folder, "make the folder", error.value());
  const int base = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base < 0) fail_open(folder, errno);
  if (missing == Missing::create && ::mkdirat(base, name.c_str(), 0700) != 0 && errno != EEXIST) {
    const int failure = errno;
    ::close(base);
    fail_write(path_, "make the folder", failure);
  }
  fd_ = ::openat(base, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const int failure = errno;
  const bool link = fd_ < 0 && is_link(base, name);
  ::close(base);
  if (link) fail_link(path_, "folder; remove it");
  if (fd_ < 0 && missing == Missing::create) fail_write(path_, "open the folder", failure);
  if (fd_ < 0) fail_open(path_, failure);
}

CacheFolder::CacheFolder(CacheFolder&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

CacheFolder::~CacheFolder() {
  if (fd_ >= 0) ::close(fd_);
}

int CacheFolder::release() noexcept { return std::exchange(fd_, -1); }

std::vector<CacheFolder::Entry> CacheFolder::files() const {
  std::vector<Entry> entries;
  const int fd = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : ::fdopendir(fd);  // owns fd if it succeeds
  if (folder == nullptr) {
    if (fd >= 0) ::close(fd);
    return entries;
  }
  const struct Closing {
    DIR* folder;
    ~Closing() { ::closedir(folder); }
  } closing{folder};
  while (const dirent* entry = ::readdir(folder)) {
    struct stat status{};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    entries.push_back({.name = entry->d_name,
                       .bytes = static_cast<std::uint64_t>(status.st_size),
                       .last_use = status.st_mtim});
  }
  return entries;
}

int CacheFolder::remove(const std::string& name) const noexcept {
  if (::unlinkat(fd_, name.c_str(), 0) == 0) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  return ::unlinkat(fd_, name.c_str(), AT_REMOVEDIR) == 0 ? 0 : errno;
}

// ---------------------------------------------------------------------------------------- the file

CacheFile::CacheFile(std::string folder, std::string subfolder, std::string name)
    : folder_(std::move(folder)), subfolder_(std::move(subfolder)), name_(std::move(name)) {
  path_ = (fs::path(folder_) / subfolder_ / name_).string();
}

RegularFile CacheFile::open() const {
  const CacheFolder folder(folder_, subfolder_, CacheFolder::Missing::fail);
  // O_NONBLOCK: a FIFO without a writer would block.
  const int fd = ::openat(folder.descriptor(), name_.c_str(),
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0 && errno == ELOOP) fail_link(path_, "regular file");
  if (fd < 0) fail_open(path_, errno);
  RegularFile file(fd, path_);
  struct stat status{};
  if (::fstat(fd, &status) != 0) fail_open(path_, errno);
  if (const std::string reason = refusal(status); !reason.empty()) {
    fail(ErrorCode::corrupt_file, "{}: {}", path_, reason);
  }
  return file;
}

AtomicFile CacheFile::replace() const {
  CacheFolder folder(folder_, subfolder_, CacheFolder::Missing::create);
  std::string name = name_, path = path_;  // what may throw comes before release()
  return AtomicFile(folder.release(), std::move(name), std::move(path));
}

int CacheFile::remove() const noexcept {
  try {
    return CacheFolder(folder_, subfolder_, CacheFolder::Missing::fail).remove(name_);
  } catch (const std::exception&) {
    return ENOENT;
  }
}

CacheFile::Locked CacheFile::lock() const {
  const CacheFolder folder(folder_, subfolder_, CacheFolder::Missing::create);
  int tries = 0;
  for (int replaced = 0; replaced < kReplaceTries;) {
    const int fd =
        ::openat(folder.descriptor(), name_.c_str(),
                 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0600);
    const int open_error = errno;
    struct stat status{};
    if (fd >= 0 && ::fstat(fd, &status) == 0 && refusal(status).empty()) {
      if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ::close(fd);
        if (++tries == kLockTries) {
          fail(ErrorCode::invalid_argument, "{}: another process holds its lock", path_);
        }
        std::this_thread::sleep_for(kLockPause);
        continue;
      }
      // Replaced by another process before it was locked?
      if (::fstat(fd, &status) == 0 && status.st_nlink == 1) {
        ::fchmod(fd, 0600);  // a file of an older version
        return {fd, path_};
      }
      ::close(fd);
      ++replaced;
      continue;
    }
    if (fd >= 0) ::close(fd);
    const int error = folder.remove(name_);
    if (error == ENOENT && fd < 0 && open_error != ELOOP) {  // it was not the file's fault
      fail_write(path_, "open for writing", open_error);
    }
    if (error != 0 && error != ENOENT) fail_write(path_, "replace the file", error);
    ++replaced;
  }
  fail(ErrorCode::invalid_argument, "{}: comes back as soon as it is replaced", path_);
}

CacheFile::Locked::~Locked() { ::close(fd_); }

std::uint64_t CacheFile::Locked::size() const {
  struct stat status{};
  return ::fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool CacheFile::Locked::begins_with(std::string_view text) const {
  std::string begin(text.size(), '\0');
  return ::pread(fd_, begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
         begin == text;
}

void CacheFile::Locked::resize(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) fail_write(path_, "cut the file", errno);
}

void CacheFile::Locked::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_write(path_, "write", written < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

}  // namespace toto::io
