// Finds the folder of a model on this machine. Nothing is ever downloaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace toto::cli {

struct LocatedModel {
  std::string name;  // in reports: the folder's name, or owner/name
  std::string folder;
};

// `wanted` is a folder with a config.json, the name of a bundled model, or owner/name of the local
// Hugging Face cache, tried in this order. Error(not_found) lists the places looked at.
LocatedModel locate_model(const std::string& wanted);

// Places of a folder that comes with the command ("models"): next to the build folder, next to the
// installed command, and in the sources it was built from.
std::vector<std::filesystem::path> bundled_folders(std::string_view what);

// The folder that an environment variable names, if it is set.
std::optional<std::filesystem::path> folder_in_variable(const char* variable);

}  // namespace toto::cli
