// From what --model says to a folder on this machine. Nothing is ever downloaded.
#pragma once

#include <string>
#include <string_view>

namespace toto::cli {

inline constexpr std::string_view kBundledModel = "toto-mini";

struct LocatedModel {
  std::string name;  // how reports call it: the folder's name, or owner/name
  std::string folder;
};

// `wanted` is a folder with a config.json, the name of a bundled model, or owner/name of the local
// Hugging Face cache, tried in this order. Error(not_found) lists the places looked at.
LocatedModel locate_model(const std::string& wanted);

}  // namespace toto::cli
