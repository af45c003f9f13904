// `.env.compile`: `export NAME=value` lines for `source`. The lines of our own switches change; all
// others stay as they are, byte for byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace toto::cli {

class EnvFile {
 public:
  explicit EnvFile(std::string_view text);

  // The value after sourcing the file, as far as plain assignments tell. Quotes are removed.
  std::optional<std::string> find(std::string_view name) const;
  // Replaces the last assignment of `name` and removes earlier ones; appends a line if there is
  // none, or if a later line does something else with the name.
  void set(std::string_view name, std::string_view value);
  std::string text() const;

 private:
  std::vector<std::string> lines_;  // without their ends
};

}  // namespace toto::cli
