#include "cli/settings/locate_model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "settings/engine_settings.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

bool holds_model(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "config.json", error);
}

// "models/toto-mini/" and "." have a name too.
std::string name_of_folder(const std::string& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

// huggingface_hub/constants.py: HF_HUB_CACHE
fs::path hub_cache() {
  if (const auto cache = folder_in_variable("HF_HUB_CACHE")) return *cache;
  if (const auto home = folder_in_variable("HF_HOME")) return *home / "hub";
  if (const auto cache = folder_in_variable("XDG_CACHE_HOME"))
    return *cache / "huggingface" / "hub";
  return folder_in_variable("HOME").value_or(".") / ".cache" / "huggingface" / "hub";
}

// Letters, digits, '.', '-' and '_', nothing that could lead out of the cache.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

// `repository` is owner/name. The cache keeps one folder per revision; refs/main names the current
// one.
fs::path hub_snapshot(const std::string& repository, std::size_t slash) {
  const fs::path folder = hub_cache() / ("models--" + repository.substr(0, slash) + "--" +
                                         repository.substr(slash + 1));
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fail(ErrorCode::not_found,
         "the model {} is not on this machine, looked for {}; toto never downloads by itself: "
         "fetch it with `hf download {}`, or give a folder",
         repository, folder.string(), repository);
  }
  const fs::path reference = folder / "refs" / "main";
  if (!fs::exists(reference, error)) {
    fail(ErrorCode::not_found,
         "{}: no such file, but it names the revision of {} to use; fetch it again with `hf "
         "download {}`",
         reference.string(), repository, repository);
  }
  std::string revision = io::read_file(reference.string(), 256);
  revision.erase(std::find_if(revision.begin(), revision.end(),
                              [](char c) { return c == '\n' || c == '\r' || c == ' '; }),
                 revision.end());
  if (!is_plain_name(revision)) {
    fail(ErrorCode::corrupt_file, "{}: holds {}, expected the name of a revision",
         reference.string(), quoted(revision));
  }
  const fs::path snapshot = folder / "snapshots" / revision;
  if (!holds_model(snapshot)) {
    fail(ErrorCode::not_found,
         "{}: no config.json there, though refs/main names this revision; the download is "
         "incomplete: repeat `hf download {}`",
         snapshot.string(), repository);
  }
  return snapshot;
}

}  // namespace

std::optional<fs::path> folder_in_variable(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::vector<fs::path> bundled_folders(std::string_view what) {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path prefix = command.parent_path().parent_path();
    folders = {prefix / what, prefix / "share" / "toto" / what};
  }
  const fs::path sources = fs::path(TOTO_SOURCE_DIR) / what;
  if (std::find(folders.begin(), folders.end(), sources) == folders.end()) {
    folders.push_back(sources);
  }
  return folders;
}

LocatedModel locate_model(const std::string& wanted) {
  if (wanted.empty()) {
    fail(ErrorCode::invalid_argument, "the model's name is empty; expected a folder or a name");
  }
  if (holds_model(wanted)) return {.name = name_of_folder(wanted), .folder = wanted};
  std::error_code error;
  if (is_plain_name(wanted)) {
    std::string places;
    for (const fs::path& folder : bundled_folders("models")) {
      if (holds_model(folder / wanted)) {
        return {.name = wanted, .folder = (folder / wanted).string()};
      }
      places += (places.empty() ? "" : ", ") + (folder / wanted).string();
    }
    if (!fs::exists(wanted, error)) {
      fail(ErrorCode::not_found,
           "no model {}, looked for a folder of this name here and in {}; give a folder with "
           "config.json and model.safetensors, or owner/name",
           quoted(wanted), places);
    }
  }
  if (fs::is_directory(wanted, error)) {
    fail(ErrorCode::not_found,
         "{}: holds no config.json; expected a folder with config.json and model.safetensors",
         wanted);
  }
  if (fs::exists(wanted, error)) {
    fail(ErrorCode::not_found, "{}: is a file, expected the folder that holds config.json", wanted);
  }
  const std::size_t slash = wanted.find('/');
  if (slash != std::string::npos && is_plain_name(wanted.substr(0, slash)) &&
      is_plain_name(wanted.substr(slash + 1))) {
    return {.name = wanted, .folder = hub_snapshot(wanted, slash).string()};
  }
  fail(ErrorCode::not_found,
       "no model folder at {}; expected a folder with config.json and model.safetensors, the name "
       "of a bundled model ({}), or owner/name",
       wanted, settings::kBundledModel);
}

}  // namespace toto::cli
