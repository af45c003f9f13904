#include "cli/settings/settings_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

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
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : all_settings()) names.push_back(spec.key);
  std::string hint = did_you_mean(key, names);
  if (hint.empty()) hint = did_you_mean(key, all_variables());
  fail(ErrorCode::invalid_argument, "{}: unknown key {}; the keys are {}{}", where, quoted(key),
       fmt::join(names, ", "), hint);
}

// Without the comment behind it, or what stands between its quotes.
std::string value_of(std::string_view text, const std::string& where, std::string_view key) {
  text = trimmed(text);
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const std::size_t end = text.find(text.front(), 1);
    const std::string_view rest =
        end == std::string_view::npos ? text : trimmed(text.substr(end + 1));
    if (end == std::string_view::npos || !(rest.empty() || rest.front() == '#')) {
      fail(ErrorCode::invalid_argument,
           "{}: the value of {} is {}, expected one closing quote at its end", where, key,
           quoted(text));
    }
    text = text.substr(1, end - 1);
  } else {
    text = trimmed(text.substr(0, text.find(" #")));
    if (text.starts_with('#')) text = {};
  }
  if (text.empty()) {
    fail(ErrorCode::invalid_argument, "{}: {} has no value; leave the line out for the default",
         where, key);
  }
  return std::string(text);
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
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", path_, number);
    if (line.starts_with("export ")) line = trimmed(line.substr(7));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      fail(ErrorCode::invalid_argument, "{}: holds {}, expected KEY = VALUE or a # comment", where,
           quoted(line));
    }
    const std::string_view key = trimmed(line.substr(0, equals));
    const SettingSpec* spec = key.starts_with('-') ? nullptr : find_spec(key);
    if (spec == nullptr) fail_unknown(where, key);
    if (const auto before = find(spec->key)) {
      fail(ErrorCode::invalid_argument,
           "{}: {} is set a second time, first at {}; expected it once", where, key,
           before->origin);
    }
    entries_.push_back({.key = spec->key,
                        .choice = {.text = value_of(line.substr(equals + 1), where, key),
                                   .origin = fmt::format("{}: {}", where, key)}});
  }
}

std::optional<Choice> SettingsFile::find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.choice;
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
