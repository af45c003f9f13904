// The config file: `key = value` lines, which flags and variables override. Read once per process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings/choice.h"
#include "settings/setting.h"

namespace toto::cli {

// The largest file of settings that is read: this one, or `.env.compile`.
inline constexpr std::size_t kMaxSettingsBytes = std::size_t{1} << 20;

class SettingsFile {
 public:
  SettingsFile() = default;  // says nothing
  // A key is one of setting_table.h or the name of its variable. Error(invalid_argument) with the
  // line for anything else: an unknown key (with the nearest one), a duplicate, no value.
  SettingsFile(std::string_view text, std::string path);

  const std::string& path() const { return path_; }  // empty: there is none
  // The value, and "FILE:LINE: KEY" as its origin.
  std::optional<Choice> find(const settings::Setting& setting) const;

 private:
  struct Entry {
    const settings::Setting* setting;
    Choice choice;
  };
  std::string path_;
  std::vector<Entry> entries_;
};

// The path of --config; before the first use of the file.
void choose_settings_file(const std::optional<std::string>& path);

// Used unless --config was given.
void propose_settings_file(const std::string& path);

// --config, else ./toto.conf, else toto/toto.conf in the user's config folder ($XDG_CONFIG_HOME,
// else ~/.config). Only the first of them must exist. Errors are those of reading it.
const SettingsFile& settings_file();

}  // namespace toto::cli
