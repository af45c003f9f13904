// Every setting there is, by all its names: what the environment, the config file, `toto config`
// and the errors about them have in common. A new setting is a new row.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto::cli {

struct SettingSpec {
  std::string_view key;                       // in the config file
  std::string_view flag;                      // empty: there is none
  std::array<std::string_view, 2> variables;  // the first one set counts; empty ones are none
  std::string_view meaning;                   // for `toto config show`
  std::string_view otherwise = {};            // of the service: what holds if nobody says anything
  bool secret = false;                        // never shown
};

std::span<const SettingSpec> all_settings();

// By a key, a variable or a flag; null if it is none of them. In keys '_' counts as '-'.
const SettingSpec* find_spec(std::string_view name);

std::vector<std::string_view> all_variables();

// A sentence for each TOTO_* variable of the environment that is set and that nothing reads, with
// the name it was probably meant to be. Sorted.
std::vector<std::string> remarks_on_variables();

}  // namespace toto::cli
