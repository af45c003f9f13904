// The commands in README.md and docs/ work as written: each `sh` block is run, line by line.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test_model.h"

namespace toto {
namespace {

struct DocumentedCommand {
  std::string line;
  std::string where;
};

// Lines of ```sh blocks that call toto; `make` lines are what CI itself runs.
std::vector<DocumentedCommand> documented_commands() {
  std::vector<std::filesystem::path> files = {std::filesystem::path(TOTO_SOURCE_DIR) / "README.md"};
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TOTO_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::vector<DocumentedCommand> commands;
  for (const auto& file : files) {
    std::ifstream in(file);
    bool inside = false;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (line.rfind("```", 0) == 0) {
        inside = line == "```sh";
      } else if (inside && line.find("toto ") != std::string::npos) {
        commands.push_back({line, file.filename().string() + ":" + std::to_string(number)});
      }
    }
  }
  return commands;
}

// One name for the command everywhere, explained before it is first used; tools that still exist.
TEST(Docs, CallTheCommandByOneName) {
  for (const DocumentedCommand& command : documented_commands()) {
    EXPECT_EQ(command.line.find("build/toto"), std::string::npos) << command.where;
  }
  const std::string readme = testing::text_of(std::string(TOTO_SOURCE_DIR) + "/README.md");
  const std::size_t path = readme.find("export PATH=\"$PWD/build:$PATH\"");
  EXPECT_LT(path, readme.find("\ntoto forecast"));
  EXPECT_EQ(readme.find("huggingface-cli"), std::string::npos) << "it is called hf now";
}

TEST(Docs, EveryCommandRuns) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"examples", "models", "tests"}) {
    std::filesystem::create_directory_symlink(std::filesystem::path(TOTO_SOURCE_DIR) / name,
                                              folder / name);
  }
  std::filesystem::create_directory(folder / "build");
  std::filesystem::create_symlink(TOTO_COMMAND, folder / "build/toto");
  const std::vector<DocumentedCommand> commands = documented_commands();
  EXPECT_GE(commands.size(), 10u);
  for (const DocumentedCommand& command : commands) {
    const std::string shell =
        "cd '" + folder.path() +
        "' && export PATH=\"$PWD/build:$PATH\" TOTO_CACHE_DIR=\"$PWD/cache\" && { " + command.line +
        "\n} >out.txt 2>err.txt </dev/null";
    const int status = std::system(shell.c_str());
    EXPECT_EQ(status, 0) << command.where << ": " << command.line << "\n"
                         << testing::text_of(folder / "err.txt");
  }
}

}  // namespace
}  // namespace toto
