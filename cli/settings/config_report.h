// The answers of `toto config show` and `toto config status`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings/env_file.h"
#include "cli/settings/settings.h"

namespace toto::cli {

struct ConfigRow {
  std::string name;
  std::string value;
  std::string origin;  // a flag, a variable, FILE:LINE: KEY, or "default"
  std::string_view meaning;
  std::vector<Choice> overruled = {};  // given elsewhere, without effect
};

struct ConfigReport {
  std::string file;  // the config file in use; empty: none
  std::vector<ConfigRow> rows;
  std::vector<std::string> warnings = {};  // of the settings, and unknown variables
};

// Error(invalid_argument) for a value that is wrong and would be used.
ConfigReport report_config(const Flags& flags);
std::string json_text(const ConfigReport& report);
std::string table_text(const ConfigReport& report);

// The switches of `.env.compile`, there and in the environment.
struct StatusReport {
  struct Row {
    std::string_view name;
    std::optional<std::string> in_file, in_environment;
  };
  std::string path;
  bool exists = false;
  std::vector<Row> rows = {};
  // By the file if it exists, else by the environment.
  bool enabled = true;
  std::string enabled_mode = {};
  // As a forecast would run now: "none" where it would be refused, the origin then says why.
  std::string mode = {}, origin = {}, dtype = {}, isa = {};
  std::vector<std::string> warnings = {};
  bool sourced = true;  // the environment has the values of the file
};

StatusReport report_status(const EnvFile& env, std::string path, bool exists);
std::string json_text(const StatusReport& report);
std::string table_text(const StatusReport& report);

}  // namespace toto::cli
