#include "cli/settings/settings_file.h"

#include <cstdlib>
#include <filesystem>

#include "base/assignment.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/settings/locate_model.h"
#include "cli/settings/setting_table.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "toto.conf";

[[noreturn]] void fail_unknown(const std::string& where, std::string_view key) {
  std::vector<std::string> keys;
  for (const settings::Setting* setting : all_settings()) keys.push_back(setting->key());
  const std::vector<std::string> variables = all_variables();
  std::string hint = did_you_mean(key, std::vector<std::string_view>(keys.begin(), keys.end()));
  if (hint.empty()) {
    hint = did_you_mean(key, std::vector<std::string_view>(variables.begin(), variables.end()));
  }
  fail(ErrorCode::invalid_argument, "{}: unknown key {}; the keys are {}{}", where, quoted(key),
       fmt::join(keys, ", "), hint);
}

std::string find_file() {
  std::error_code error;
  if (fs::exists(kName, error)) return kName;
  std::optional<fs::path> folder = folder_in_variable("XDG_CONFIG_HOME");
  if (!folder) {
    folder = folder_in_variable("HOME");
    if (folder) *folder /= ".config";
  }
  if (!folder) return {};
  const fs::path path = *folder / "toto" / kName;
  return fs::exists(path, error) ? path.string() : std::string();
}

std::optional<std::string>& chosen_path() {
  static std::optional<std::string> path;
  return path;
}

}  // namespace

SettingsFile::SettingsFile(std::string_view text, std::string path) : path_(std::move(path)) {
  for (const NumberedLine& line : lines_of(text)) {
    if (is_blank_or_comment(line.text)) continue;
    const std::string where = fmt::format("{}:{}", path_, line.number);
    const auto found = parse_assignment(line.text);
    if (!found) {
      fail(ErrorCode::invalid_argument, "{}: holds {}, expected KEY = VALUE or a # comment", where,
           quoted(trimmed(line.text)));
    }
    const settings::Setting* setting = find_setting(found->name);
    if (setting == nullptr) fail_unknown(where, found->name);
    if (const auto before = find(*setting)) {
      fail(ErrorCode::invalid_argument,
           "{}: {} is set a second time, first at {}; expected it once", where, found->name,
           before->origin);
    }
    if (!found->well_quoted) {
      fail(ErrorCode::invalid_argument,
           "{}: the value of {} is {}, expected one closing quote at its end", where, found->name,
           quoted(found->value));
    }
    if (found->value.empty()) {
      fail(ErrorCode::invalid_argument, "{}: {} has no value; leave the line out for the default",
           where, found->name);
    }
    entries_.push_back({.setting = setting,
                        .choice = {.text = std::string(found->value),
                                   .origin = fmt::format("{}: {}", where, found->name)}});
  }
}

std::optional<Choice> SettingsFile::find(const settings::Setting& setting) const {
  for (const Entry& entry : entries_) {
    if (entry.setting->key() == setting.key()) return entry.choice;
  }
  return std::nullopt;
}

void choose_settings_file(const std::optional<std::string>& path) { chosen_path() = path; }

void propose_settings_file(const std::string& path) {
  if (!chosen_path()) chosen_path() = path;
}

const SettingsFile& settings_file() {
  // A file that cannot be read throws here, and again at the next use.
  static const SettingsFile file = [] {
    const std::string path = chosen_path() ? *chosen_path() : find_file();
    if (path.empty() && chosen_path()) {
      fail(ErrorCode::invalid_argument, "--config is empty, expected a file");
    }
    return path.empty() ? SettingsFile()
                        : SettingsFile(io::read_file(path, kMaxSettingsBytes), path);
  }();
  return file;
}

}  // namespace toto::cli
