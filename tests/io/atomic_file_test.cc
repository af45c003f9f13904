#include "io/atomic_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "io_fixture.h"

// Replacements of the system calls under test: each injects `faults`, then calls the real one.
namespace {

struct Faults {
  int write_error = 0;         // errno of every write after the first
  std::size_t write_most = 0;  // bytes a write takes at most; 0: no limit
  bool interrupt = false;      // every second call fails with EINTR
  int fsync_error = 0;
  int rename_error = 0;
  int num_writes = 0;
  int num_fsyncs = 0;
};
thread_local Faults faults;  // of the thread that sets them

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int fails_with(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, std::size_t size) {
  static const auto real = next<ssize_t(int, const void*, std::size_t)>("write");
  const int number = faults.num_writes++;
  if (faults.write_error != 0 && number > 0) return fails_with(faults.write_error);
  if (faults.interrupt && number % 2 == 0) return fails_with(EINTR);
  if (faults.write_most != 0 && size > faults.write_most) size = faults.write_most;
  return real(fd, data, size);
}

extern "C" int fsync(int fd) {
  static const auto real = next<int(int)>("fsync");
  ++faults.num_fsyncs;
  return faults.fsync_error != 0 ? fails_with(faults.fsync_error) : real(fd);
}

extern "C" int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  static const auto real = next<int(int, const char*, int, const char*)>("renameat");
  if (faults.rename_error != 0) return fails_with(faults.rename_error);
  return real(from_folder, from, to_folder, to);
}

namespace toto::io {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override { faults = {}; }
  void TearDown() override { faults = {}; }

  // The file "old" exists, `call` fails, and afterwards only the unchanged old file exists.
  void expect_untouched(ErrorCode code, std::string_view fragment,
                        const std::function<void(const std::string&)>& call) {
    const std::string path = folder_ / "old";
    put(path, "old contents");
    expect_error(code, {path, fragment}, [&] { call(path); });
    faults = {};
    EXPECT_EQ(contents_of(path), "old contents");
    EXPECT_EQ(folder_.num_entries(), 1U);
  }

  TemporaryFolder folder_;
};

mode_t mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(chmod(path.c_str(), mode), 0); }

// Runs `body` in a child process, so that a changed limit or user affects only the child; returns
// the child's exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int code_of(const std::function<void()>& call) {
  try {
    call();
    return 100;
  } catch (const Error& error) {
    return static_cast<int>(error.code());
  }
}

TEST_F(AtomicFileTest, CreatesAFileFlushedAndWithTheUsersMode) {
  const mode_t mask = umask(027);
  write_file_atomically(folder_ / "new", "contents");
  umask(mask);
  EXPECT_EQ(contents_of(folder_ / "new"), "contents");
  EXPECT_EQ(mode_of(folder_ / "new"), 0640U);
  EXPECT_EQ(folder_.num_entries(), 1U);
  EXPECT_EQ(faults.num_fsyncs, 2);  // the file and its folder
}

TEST_F(AtomicFileTest, ReplacesAFileAndKeepsItsMode) {
  put(folder_ / "old", "a long old text");
  set_mode(folder_ / "old", 0604);
  write_file_atomically(folder_ / "old", "new");
  EXPECT_EQ(contents_of(folder_ / "old"), "new");
  EXPECT_EQ(mode_of(folder_ / "old"), 0604U);
  write_file_atomically(folder_ / "old", "");
  EXPECT_EQ(contents_of(folder_ / "old"), "");
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(AtomicFileTest, AReaderOfTheOldFileKeepsIt) {
  put(folder_ / "old", "old");
  std::ifstream reader(folder_ / "old");
  AtomicFile file(folder_ / "old");
  file.write("new");
  EXPECT_EQ(contents_of(folder_ / "old"), "old");
  file.commit();
  EXPECT_EQ(contents_of(folder_ / "old"), "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old");
}

TEST_F(AtomicFileTest, CreatesParentFolders) {
  write_file_atomically(folder_ / "a/b/c/file", "x");
  EXPECT_EQ(contents_of(folder_ / "a/b/c/file"), "x");
}

TEST_F(AtomicFileTest, AcceptsTheLongestFileNames) {
  const std::string path = folder_ / std::string(255, 'n');
  write_file_atomically(path, "x");
  EXPECT_EQ(contents_of(path), "x");
}

TEST_F(AtomicFileTest, AcceptsRelativeNamesAndADash) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  write_file_atomically("plain", "1");
  write_file_atomically("-", "2");
  fs::current_path(before);
  EXPECT_EQ(contents_of(folder_ / "plain"), "1");
  EXPECT_EQ(contents_of(folder_ / "-"), "2");
}

TEST_F(AtomicFileTest, FollowsSymbolicLinks) {
  fs::create_directory(folder_ / "real");
  put(folder_ / "real/file", "old");
  fs::create_symlink("real/file", folder_ / "link");            // relative to its own folder
  fs::create_symlink(folder_ / "link", folder_ / "second");     // absolute, to a link
  fs::create_symlink("real/later", folder_ / "leads_nowhere");  // yet
  write_file_atomically(folder_ / "second", "new");
  write_file_atomically(folder_ / "leads_nowhere", "made");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "second"));
  EXPECT_EQ(contents_of(folder_ / "real/file"), "new");
  EXPECT_EQ(contents_of(folder_ / "real/later"), "made");
  fs::create_symlink("loop", folder_ / "loop");
  expect_error(ErrorCode::invalid_argument, {folder_ / "loop", "symbolic links"},
               [&] { write_file_atomically(folder_ / "loop", "x"); });
}

TEST_F(AtomicFileTest, RefusesInvalidFileNames) {
  fs::create_directory(folder_ / "sub");
  expect_error(ErrorCode::invalid_argument, {folder_ / "sub", "Is a directory"},
               [&] { write_file_atomically(folder_ / "sub", "x"); });
  for (const std::string& name : {std::string(), folder_ / "new/", std::string("a\0b", 3)}) {
    expect_error(ErrorCode::invalid_argument, {"not a file name"},
                 [&] { write_file_atomically(name, "x"); });
  }
  put(folder_ / "file", "");
  expect_error(ErrorCode::not_found, {folder_ / "file/below", "Not a directory"},
               [&] { write_file_atomically(folder_ / "file/below", "x"); });
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(AtomicFileTest, KeepsProtectedFilesAndFolders) {
  set_mode(folder_.path(), 0777);
  put(folder_ / "protected", "old");
  set_mode(folder_ / "protected", 0444);
  fs::create_directory(folder_ / "closed");
  set_mode(folder_ / "closed", 0555);
  for (const std::string& path : {folder_ / "protected", folder_ / "closed/file"}) {
    const int result = in_child([&] {
      if (geteuid() == 0 && setuid(65534) != 0) return 101;  // nothing is protected from root
      return code_of([&] { write_file_atomically(path, "new"); });
    });
    EXPECT_EQ(result, static_cast<int>(ErrorCode::invalid_argument)) << path;
  }
  EXPECT_EQ(contents_of(folder_ / "protected"), "old");
}

TEST_F(AtomicFileTest, WithoutCommitLeavesNothing) {
  {
    AtomicFile(folder_ / "new").write("half");
  }
  EXPECT_EQ(folder_.num_entries(), 0U);
}

TEST_F(AtomicFileTest, RefusesUseAfterItsEnd) {
  AtomicFile file(folder_ / "new");
  file.commit();
  expect_error(ErrorCode::internal, {folder_ / "new"}, [&] { file.write("x"); });
  expect_error(ErrorCode::internal, {folder_ / "new"}, [&] { file.commit(); });
  EXPECT_EQ(contents_of(folder_ / "new"), "");
}

TEST_F(AtomicFileTest, SurvivesShortAndInterruptedWrites) {
  faults.write_most = 7;
  faults.interrupt = true;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  write_file_atomically(folder_ / "new", text);
  EXPECT_GT(faults.num_writes, 280);
  EXPECT_EQ(contents_of(folder_ / "new"), text);
}

TEST_F(AtomicFileTest, AFailureLeavesTheOldFile) {
  const std::map<int, std::pair<ErrorCode, std::string_view>> writes = {
      {ENOSPC, {ErrorCode::out_of_memory, "No space left on device; free some space"}},
      {EDQUOT, {ErrorCode::out_of_memory, "Disk quota exceeded; free some space"}},
      {EIO, {ErrorCode::out_of_memory, "Input/output error"}}};
  for (const auto& [error, expected] : writes) {
    expect_untouched(expected.first, expected.second, [&, number = error](const std::string& path) {
      faults.write_error = number;
      faults.write_most = 3;  // fails in the middle
      write_file_atomically(path, "new contents");
    });
  }
  expect_untouched(ErrorCode::out_of_memory, "cannot flush to disk", [](const std::string& path) {
    faults.fsync_error = EIO;
    write_file_atomically(path, "new contents");
  });
  expect_untouched(ErrorCode::invalid_argument, "cannot rename", [](const std::string& path) {
    faults.rename_error = EPERM;
    write_file_atomically(path, "new contents");
  });
}

TEST_F(AtomicFileTest, ReportsAFileSizeLimitAsAFullDisk) {
  put(folder_ / "old", "old");
  const int result = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 101;
    return code_of([&] { write_file_atomically(folder_ / "old", std::string(5000, 'x')); });
  });
  EXPECT_EQ(result, static_cast<int>(ErrorCode::out_of_memory));
  EXPECT_EQ(contents_of(folder_ / "old"), "old");
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(AtomicFileTest, WritesDevicesAndPipesDirectly) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  expect_error(ErrorCode::out_of_memory, {"/dev/full", "No space left"},
               [] { write_file_atomically("/dev/full", "x"); });
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { write_file_atomically(folder_ / "pipe", "through"); });
  EXPECT_EQ(contents_of(folder_ / "pipe"), "through");
  writer.join();
}

// A pipe without a reader, and one whose reader does not read: both waits end with an interrupt.
TEST_F(AtomicFileTest, AnInterruptEndsTheWaitForAReader) {
  static std::atomic<bool> interrupted;
  const std::string path = folder_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  watch_interrupts([]() noexcept { return interrupted.load(); });
  const auto expect_cancelled = [&](std::string_view text) {
    interrupted = false;
    std::thread later([] {
      usleep(50'000);
      interrupted = true;
    });
    expect_error(ErrorCode::cancelled, {path, "interrupted"},
                 [&] { write_file_atomically(path, text); });
    later.join();
  };
  expect_cancelled("x");
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  expect_cancelled(std::string(1'000'000, 'x'));  // more than a pipe holds
  close(reader);
  watch_interrupts(nullptr);
}

TEST_F(AtomicFileTest, RemovesWhatKilledProcessesLeft) {
  const auto aged = [&](const std::string& name, int hours) {
    put(folder_ / name, "half");
    fs::last_write_time(folder_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  aged(".toto-1-0.tmp", 2);
  aged(".toto-2-0.tmp", 0);  // another process may be writing it
  aged(".toto-3-0.tmp", 2);  // locked: it is being written, slowly
  aged("results.tmp", 2);
  aged(".toto-notes", 2);
  put(folder_ / "elsewhere", "x");
  fs::create_symlink(folder_ / "elsewhere", folder_ / ".toto-4-0.tmp");
  const int writer = open((folder_ / ".toto-3-0.tmp").c_str(), O_WRONLY);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  write_file_atomically(folder_ / "new", "new");
  close(writer);
  EXPECT_FALSE(fs::exists(folder_ / ".toto-1-0.tmp"));
  for (const char* name :
       {".toto-2-0.tmp", ".toto-3-0.tmp", ".toto-4-0.tmp", "results.tmp", ".toto-notes", "new"}) {
    EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  }
}

TEST_F(AtomicFileTest, KilledBeforeTheRenameLeavesTheOldFile) {
  put(folder_ / "old", "old");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder_ / "old");
    file.write("half of the new conte");
    const char byte = 1;
    write(ready[1], &byte, 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(contents_of(folder_ / "old"), "old");
  write_file_atomically(folder_ / "old", "new");  // leftovers of the killed process do not matter
  EXPECT_EQ(contents_of(folder_ / "old"), "new");
  close(ready[0]);
  close(ready[1]);
}

TEST_F(AtomicFileTest, KilledAtAnyMomentLeavesACompleteFile) {
  const std::string path = folder_ / "file";
  const auto text = [](char c) { return std::string(20'000, c); };
  write_file_atomically(path, text('a'));
  for (int round = 0; round < 40; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
        write_file_atomically(path, text(c));
      }
    }
    usleep(static_cast<useconds_t>(500 + 137 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string found = contents_of(path);
    ASSERT_EQ(found.size(), 20'000U);
    ASSERT_EQ(found, text(found.front()));
  }
}

TEST_F(AtomicFileTest, TwoWritersLeaveOneCompleteFile) {
  const std::string path = folder_ / "file";
  const auto write_many = [&](char c) {
    for (int i = 0; i < 50; ++i) write_file_atomically(path, std::string(10'000, c));
  };
  std::thread other(write_many, 'b');
  write_many('a');
  other.join();
  const std::string found = contents_of(path);
  EXPECT_EQ(found, std::string(10'000, found.front()));
  EXPECT_EQ(folder_.num_entries(), 1U);
}

// --------------------------------------------------------------------------------------- read_file

TEST_F(AtomicFileTest, RecognisesOneFileByAllItsNames) {
  put(folder_ / "file", "x");
  put(folder_ / "other", "x");
  std::filesystem::create_symlink("file", folder_ / "link");
  std::filesystem::create_symlink("new", folder_ / "dangling");
  std::filesystem::create_directory_symlink(folder_.path(), folder_ / "here");
  const auto same = [&](const std::string& a, const std::string& b) {
    EXPECT_EQ(same_file(folder_ / a, folder_ / b), same_file(folder_ / b, folder_ / a));
    return same_file(folder_ / a, folder_ / b);
  };
  EXPECT_TRUE(same("file", "file"));
  EXPECT_TRUE(same("file", "link"));
  EXPECT_TRUE(same("file", "here/./here/link"));
  EXPECT_FALSE(same("file", "other"));
  EXPECT_FALSE(same("file", "new"));
  // Files that do not exist, in folders that may not exist either.
  EXPECT_TRUE(same("new", "here/new"));
  EXPECT_TRUE(same("new", "dangling"));
  EXPECT_TRUE(same("a/b/new", "here/a/./b/../b/new"));
  EXPECT_FALSE(same("new", "newer"));
  EXPECT_FALSE(same("new", "a/new"));
  EXPECT_FALSE(same_file("/dev/null", "/dev/null"));
}

TEST_F(AtomicFileTest, ReadsAWholeFileUpToTheLimit) {
  const std::string text(10'000, 'x');
  put(folder_ / "file", text);
  EXPECT_EQ(read_file(folder_ / "file", 10'000), text);
  expect_error(ErrorCode::corrupt_file, {folder_ / "file", "10000 bytes", "at most 9999"},
               [&] { read_file(folder_ / "file", 9'999); });
  put(folder_ / "empty", "");
  EXPECT_EQ(read_file(folder_ / "empty", 0), "");
  EXPECT_NE(read_file("/proc/self/status", 100'000).find("Pid:"), std::string::npos);
  expect_error(ErrorCode::corrupt_file, {"/proc/self/status", "at most 20"},
               [] { read_file("/proc/self/status", 20); });
}

TEST_F(AtomicFileTest, ReadRefusesNonFilesWithoutBlocking) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const auto refused = [&](ErrorCode code, const std::string& path, std::string_view why) {
    expect_error(code, {path, why}, [&] { read_file(path, 100); });
  };
  refused(ErrorCode::corrupt_file, folder_ / "pipe", "a FIFO, expected a regular file");
  refused(ErrorCode::corrupt_file, folder_.path(), "a folder, expected a regular file");
  refused(ErrorCode::corrupt_file, "/dev/zero", "a device, expected a regular file");
  refused(ErrorCode::not_found, folder_ / "absent", "no such file");
  refused(ErrorCode::not_found, folder_ / "pipe/below", "no such file");
  expect_error(ErrorCode::not_found, {"zero byte"}, [] { read_file(std::string("a\0b", 3), 100); });
}

TEST_F(AtomicFileTest, ReadReportsMissingPermission) {
  put(folder_ / "secret", "x");
  set_mode(folder_.path(), 0755);
  set_mode(folder_ / "secret", 0);
  const int result = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 101;
    return code_of([&] { read_file(folder_ / "secret", 100); });
  });
  EXPECT_EQ(result, static_cast<int>(ErrorCode::corrupt_file));
}

}  // namespace
}  // namespace toto::io
