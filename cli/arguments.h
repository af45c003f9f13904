// Command-line arguments: the one door to CLI11. A command declares its options; values are stored
// in the variables it names. Wrong usage is an Error(invalid_argument) with one sentence.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace toto::cli {

// One subcommand of `toto`.
class Command {
 public:
  Command& positional(const std::string& name, std::string& value, const std::string& help);
  // Any number of them, by default at least one.
  Command& positionals(const std::string& name, std::vector<std::string>& values,
                       const std::string& help, bool at_least_one = true);
  // Stays empty unless given; `placeholder` is the value in --help.
  Command& option(const std::string& name, const std::string& placeholder,
                  std::optional<std::string>& value, const std::string& help);
  // Several values: repeated or separated by spaces.
  Command& option(const std::string& name, std::vector<std::string>& values,
                  const std::string& help);
  Command& flag(const std::string& name, bool& value, const std::string& help);
  // The two that most commands have.
  Command& json(std::optional<std::string>& path, const std::string& help);  // --json FILE
  Command& progress(bool& forced);                                           // --progress
  Command& note(const std::string& text);  // below the example of --help
  Command& run(std::function<int()> action);

 private:
  friend class Arguments;
  struct Impl;
  explicit Command(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

class Arguments {
 public:
  Arguments();
  ~Arguments();
  // An option of every command but those that have one of this name; `chosen` is called with it
  // before a command runs.
  void common_option(const std::string& name, const std::string& placeholder,
                     const std::string& help,
                     std::function<void(const std::optional<std::string>&)> chosen);
  // `example` is shown at the end of --help.
  Command add_command(const std::string& name, const std::string& summary,
                      const std::string& example);
  // Parses, then runs the chosen command. Help and version go to stdout with exit code 0; so does
  // the help for `toto` alone and `toto help [COMMAND]`.
  int run(std::vector<std::string> words);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace toto::cli
