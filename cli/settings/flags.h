// The flags of a command that are rows of a table of settings, with the values given.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "settings/setting.h"

namespace toto::cli {

// Copies keep the values; the one that declared the flags must outlive the parsing.
class Flags {
 public:
  // Declares the flag with the help of its row.
  void add(Command& command, const settings::Setting& setting);
  // Of every row that has one.
  template <typename Fields>
  void add_all(Command& command, const Fields& fields) {
    for (const settings::Setting& setting : fields) {
      if ((setting.doors & settings::kFlag) != 0) add(command, setting);
    }
  }

  bool has(std::string_view name) const { return flags_.contains(name); }  // is declared
  // As it was typed, "1" or "0" of a switch; nothing if it was not given.
  std::optional<std::string> find(std::string_view name) const;
  bool given(std::string_view name) const { return find(name).has_value(); }
  void set(std::string_view name, std::optional<std::string> text);

 private:
  struct Flag {
    std::optional<std::string> text = {};
    bool is_on = false;             // of a switch
    std::string_view on_text = {};  // its text when given
  };
  std::map<std::string, Flag, std::less<>> flags_;  // CLI11 keeps references to the values
};

// Rows of one command: flags, and the doors a row adds.
template <typename Target>
std::vector<settings::Field<Target>> command_table(std::vector<settings::Field<Target>> rows) {
  for (settings::Field<Target>& row : rows) row.doors |= settings::kFlag;
  return settings::table(std::move(rows));
}

}  // namespace toto::cli
