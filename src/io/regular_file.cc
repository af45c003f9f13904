#include "io/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace toto::io {
namespace {

// For error messages.
std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a file with data";
}

// O_NONBLOCK: opening a FIFO without a writer would block forever. No effect on regular files.
int open_unblocked(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    fail(ErrorCode::not_found, "{}: no such file: its name holds a zero byte", path.c_str());
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) fail_open(path, errno);
  return fd;
}

}  // namespace

void fail_open(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      fail(ErrorCode::not_found, "{}: no such file; check the path", path);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      fail(ErrorCode::out_of_memory, "{}: cannot be opened: {}", path,
           std::generic_category().message(error));
    case EACCES:
    case EPERM:
      fail(ErrorCode::corrupt_file, "{}: may not be read; check its permissions", path);
    default:
      fail(ErrorCode::corrupt_file, "{}: cannot be opened: {}", path,
           std::generic_category().message(error));
  }
}

RegularFile::RegularFile(const std::string& path) : RegularFile(open_unblocked(path), path) {}

RegularFile::RegularFile(int fd, std::string path) : path_(std::move(path)), fd_(fd) {
  struct stat status{};
  const bool known = ::fstat(fd_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(fd_);  // the destructor does not run when a constructor throws
    fail(ErrorCode::corrupt_file, "{}: is {}, expected a regular file", path_,
         known ? kind_of(status.st_mode) : "unreadable");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(std::exchange(other.size_, 0)) {}

RegularFile& RegularFile::operator=(RegularFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) ::close(fd_);
}

FileStamp RegularFile::stamp() const {
  struct stat status{};
  if (::fstat(fd_, &status) != 0) {
    fail(ErrorCode::corrupt_file, "{}: cannot be examined: {}", path_,
         std::generic_category().message(errno));
  }
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim),
          .owner = status.st_uid,
          .mode = status.st_mode & 07777,
          .num_links = static_cast<std::uint32_t>(status.st_nlink)};
}

std::size_t RegularFile::read_at(std::uint64_t offset, std::span<std::byte> dst) const {
  std::size_t done = 0;
  while (done < dst.size()) {
    const ssize_t got =
        ::pread(fd_, dst.data() + done, dst.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      const int error = errno;
      fail(ErrorCode::corrupt_file, "{}: cannot be read at byte {}: {}", path_, offset + done,
           std::generic_category().message(error));
    }
  }
  return done;
}

}  // namespace toto::io
