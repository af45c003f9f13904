// `.env.compile`: `export NAME=value` lines for `source`. We change the lines of our own switches
// and keep everything else as it is, byte for byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toto::cli {

class EnvFile {
 public:
  explicit EnvFile(std::string_view text);

  // What the shell would have after sourcing, as far as plain assignments tell. Quotes are removed.
  std::optional<std::string> find(std::string_view name) const;
  // In place of the last assignment of `name`, earlier ones removed; at the end if there is none,
  // or if a line after it does something else with the name.
  void set(std::string_view name, std::string_view value);
  std::string text() const;

 private:
  std::vector<std::string> lines_;  // without their ends
};

}  // namespace toto::cli
