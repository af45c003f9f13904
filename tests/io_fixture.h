// Shared by tests: a temporary folder, file contents, and checks of error messages.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

#include "toto/toto.h"

namespace toto::io {

// A fresh folder, removed with everything in it when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "toto-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  std::size_t num_entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// `call` throws toto::Error with this code, and the sentence holds every one of the fragments.
template <typename Call>
void expect_error(ErrorCode code, std::initializer_list<std::string_view> fragments, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one with \"" << *fragments.begin() << "\"";
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string_view::npos) << sentence;
    for (const std::string_view fragment : fragments) {
      EXPECT_NE(sentence.find(fragment), std::string_view::npos)
          << "\"" << sentence << "\" lacks \"" << fragment << "\"";
    }
  }
}

// Above any time that the work of a test takes, however busy the machine is. How fast it is, is
// measured by bench/time_gate.cc.
inline constexpr double kHangSeconds = 60;

// CPU seconds of this thread: other load on the machine does not count.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace toto::io
