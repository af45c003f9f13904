// Files that belong together: all new or all old.
#include "io/file_set.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "io_fixture.h"

namespace toto::io {
namespace {

namespace fs = std::filesystem;

class FileSetTest : public testing::Test {
 protected:
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      all[entry.path().filename().string()] =
          entry.is_regular_file() ? contents_of(entry.path().string()) : "(no file)";
    }
    return all;
  }
  void put_old() const {
    put(folder_ / "a.csv", "old a");
    put(folder_ / "results.json", "old results");
  }
  void add_new(FileSet& files) const {
    files.add(folder_ / "a.csv", "new a");
    files.add(folder_ / "b.csv", [](const FileSet::Sink& sink) {
      sink("new ");
      sink("b");
    });
    files.add(folder_ / "results.json", "new results");
  }

  TemporaryFolder folder_;
  const std::map<std::string, std::string> old_ = {{"a.csv", "old a"},
                                                   {"results.json", "old results"}};
  const std::map<std::string, std::string> new_ = {
      {"a.csv", "new a"}, {"b.csv", "new b"}, {"results.json", "new results"}};
};

TEST_F(FileSetTest, NothingChangesBeforeTheCommit) {
  put_old();
  {
    FileSet files;
    add_new(files);
    EXPECT_EQ(contents_of(folder_ / "a.csv"), "old a");
    EXPECT_FALSE(fs::exists(folder_ / "b.csv"));
  }
  EXPECT_EQ(contents(), old_) << "without a commit nothing stays";
  FileSet files;
  add_new(files);
  files.commit();
  EXPECT_EQ(contents(), new_);
}

TEST_F(FileSetTest, AnErrorWhileWritingLeavesTheOld) {
  put_old();
  expect_error(ErrorCode::corrupt_file, {"half way"}, [&] {
    FileSet files;
    add_new(files);
    files.add(folder_ / "c.csv", [](const FileSet::Sink& sink) {
      sink("half");
      throw Error(ErrorCode::corrupt_file, "half way");
    });
  });
  EXPECT_EQ(contents(), old_);
}

// The last rename fails, because a folder has taken the name meanwhile: what was renamed before
// goes back, what was not there before goes.
TEST_F(FileSetTest, AFailedRenameLeavesTheOld) {
  put_old();
  expect_error(ErrorCode::invalid_argument, {"last", "cannot rename"}, [&] {
    FileSet files;
    add_new(files);
    files.add(folder_ / "last", "x");
    fs::create_directory(folder_ / "last");
    files.commit();
  });
  fs::remove(folder_ / "last");
  EXPECT_EQ(contents(), old_);
}

TEST_F(FileSetTest, AFullDiskLeavesTheOld) {
  put_old();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      FileSet files;
      add_new(files);
      files.add(folder_ / "large.csv", std::string(5000, 'x'));
      files.commit();
    } catch (const Error& error) {
      _exit(static_cast<int>(error.code()));
    }
    _exit(100);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorCode::out_of_memory));
  EXPECT_EQ(contents(), old_);
}

// Charts of an evaluation: far more files than a process may have open.
TEST_F(FileSetTest, HoldsMoreFilesThanDescriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  FileSet files;
  for (int i = 0; i < 200; ++i) files.add(folder_ / ("file" + std::to_string(i)), "x");
  files.commit();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(folder_.num_entries(), 200u);
}

// Killed at any moment: each file is whole, and results.json is never newer than the others.
TEST_F(FileSetTest, KilledAtAnyMomentTheLastIsNotNewer) {
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        const std::string text = std::to_string(i);
        FileSet files;
        files.add(folder_ / "a.csv", text);
        files.add(folder_ / "results.json", text);
        files.commit();
      }
    }
    usleep(static_cast<useconds_t>(2000 + 137 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (!fs::exists(folder_ / "results.json")) continue;
    const int first = std::stoi(contents_of(folder_ / "a.csv"));
    const int last = std::stoi(contents_of(folder_ / "results.json"));
    ASSERT_TRUE(first == last || first == last + 1 || first == 0) << first << " " << last;
    fs::remove(folder_ / "results.json");
  }
}

TEST_F(FileSetTest, KeepsLinksModesAndDevices) {
  put(folder_ / "target", "old");
  ASSERT_EQ(chmod((folder_ / "target").c_str(), 0640), 0);
  fs::create_symlink(folder_ / "target", folder_ / "link");
  FileSet files;
  files.add(folder_ / "link", "new");
  files.add("/dev/null", "gone");
  files.commit();
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(contents_of(folder_ / "target"), "new");
  EXPECT_EQ(fs::status(folder_ / "target").permissions(), fs::perms(0640));
}

}  // namespace
}  // namespace toto::io
