// Runs the real command and keeps what it said. Every run has a clean environment and a fresh
// folder.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventually.h"
#include "io/json.h"
#include "io_fixture.h"
#include "tables/timestamps.h"

namespace toto::cli {

using io::contents_of;
using io::put;
using io::TemporaryFolder;
using Environment = std::map<std::string, std::string>;

struct Result {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  // A running command. Its output goes to files, so that no pipe can fill up.
  class Running {
   public:
    Running(pid_t pid, std::string out, std::string err)
        : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}
    pid_t pid() const { return pid_; }
    std::string err_so_far() const { return contents_of(err_); }
    Result wait() const {
      int status = 0;
      waitpid(pid_, &status, 0);
      return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
              .out = contents_of(out_),
              .err = contents_of(err_)};
    }

   private:
    pid_t pid_;
    std::string out_, err_;
  };

  // Standard input is `input`; the working directory is the temporary folder. Run by root, `nobody`
  // runs the command as a user without rights, also from a folder that this user may not enter: the
  // program is opened before the rights go.
  Running start(const std::vector<std::string>& arguments, const Environment& environment = {},
                std::string_view input = {}, bool nobody = false) {
    const std::string number = std::to_string(++num_runs_);
    const std::string in = logs_ / ("in" + number), out = logs_ / ("out" + number),
                      err = logs_ / ("err" + number);
    put(in, input);
    Environment all = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}};
    for (const auto& [name, value] : environment) all[name] = value;
    std::vector<std::string> variables;
    for (const auto& [name, value] : all) variables.push_back(name + "=" + value);
    std::vector<std::string> words = {command_};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto pointers = [](std::vector<std::string>& strings) {
      std::vector<char*> result;
      for (std::string& string : strings) result.push_back(string.data());
      result.push_back(nullptr);
      return result;
    };
    const std::vector<char*> argv = pointers(words), envp = pointers(variables);
    const pid_t pid = fork();
    if (pid == 0) {  // only what is safe after a fork
      const int program = open(argv[0], O_RDONLY | O_CLOEXEC);
      const auto redirect = [](const std::string& path, int flags, int fd) {
        const int file = open(path.c_str(), flags, 0666);
        return file >= 0 && dup2(file, fd) == fd;
      };
      if (!redirect(in, O_RDONLY, 0) || !redirect(out, O_WRONLY | O_CREAT | O_TRUNC, 1) ||
          !redirect(err, O_WRONLY | O_CREAT | O_TRUNC, 2) || chdir(folder_.path().c_str()) != 0 ||
          (nobody && getuid() == 0 && setuid(65534) != 0)) {
        _exit(126);
      }
      if (nobody) fexecve(program, argv.data(), envp.data());
      execve(argv[0], argv.data(), envp.data());
      _exit(127);
    }
    return {pid, out, err};
  }

  Result run(const std::vector<std::string>& arguments, const Environment& environment = {},
             std::string_view input = {}) {
    return start(arguments, environment, input).wait();
  }

  // A line of shell, for pipes; `toto` is the command.
  Result shell(const std::string& line) {
    const std::string out = logs_ / "shell-out", err = logs_ / "shell-err";
    const std::string whole = "export HOME='" + home_.path() +
                              "'; unset XDG_CACHE_HOME TOTO_CACHE_DIR; cd '" + folder_.path() +
                              "' && toto() { '" + command_ + "' \"$@\"; } && { " + line + "; } >'" +
                              out + "' 2>'" + err + "'";
    const int status = std::system(("bash -c \"$(cat <<'END'\n" + whole + "\nEND\n)\"").c_str());
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .out = contents_of(out),
            .err = contents_of(err)};
  }

  // The command refuses with this exit code and one error line holding every fragment; nothing was
  // printed on stdout and nothing was written.
  void expect_refusal(int exit_code, std::initializer_list<std::string_view> fragments,
                      const std::vector<std::string>& arguments,
                      const Environment& environment = {}, std::string_view input = {}) {
    const std::size_t before = folder_.num_entries();
    const Result result = run(arguments, environment, input);
    std::string words;
    for (const std::string& word : arguments) words += word + " ";
    EXPECT_EQ(result.exit_code, exit_code) << words << "\n" << result.err;
    EXPECT_EQ(result.out, "") << words;
    const std::string line = error_line(result);
    for (const std::string_view fragment : fragments) {
      EXPECT_NE(line.find(fragment), std::string::npos)
          << words << "\n\"" << line << "\" lacks \"" << fragment << "\"";
    }
    EXPECT_EQ(folder_.num_entries(), before) << words << "left a file behind";
  }

  // The error line, which is the last one and the only one.
  static std::string error_line(const Result& result) {
    const std::size_t at = result.err.rfind("error: ");
    if (at == std::string::npos || (at > 0 && result.err[at - 1] != '\n')) return {};
    EXPECT_EQ(result.err.find('\n', at), result.err.size() - 1) << result.err;
    EXPECT_EQ(result.err.find("\nerror: "), at == 0 ? std::string::npos : at - 1) << result.err;
    return result.err.substr(at);
  }

  static io::Json json_of(const Result& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return io::parse_json(result.out, "stdout");
  }

  std::string path(std::string_view name) const { return folder_ / name; }
  void file(std::string_view name, std::string_view text) const { put(path(name), text); }
  static std::string data(std::string_view name) {
    return std::string(TOTO_SOURCE_DIR "/examples/data/") + std::string(name);
  }

  // `rows` days of the columns a and b.
  static std::string wide_csv(int rows) {
    std::string text = "date,a,b\n";
    for (int i = 0; i < rows; ++i) {
      text +=
          fmt::format("{},{},{}\n",
                      tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}),
                      10 + i % 7, 100 - i % 5);
    }
    return text;
  }

  std::string command_ = TOTO_COMMAND;
  TemporaryFolder folder_;

 private:
  TemporaryFolder logs_, home_;
  int num_runs_ = 0;
};

// A member that must be there.
inline const io::Json& at(const io::Json& json, std::string_view key) {
  static const io::Json kNothing;
  const io::Json* found = json.find(key);
  EXPECT_NE(found, nullptr) << "no \"" << key << "\"";
  return found == nullptr ? kNothing : *found;
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline std::vector<std::string> keys_of(const io::Json& json) {
  std::vector<std::string> keys;
  for (const io::Json::Member& member : json.object) keys.push_back(member.first);
  return keys;
}

}  // namespace toto::cli
