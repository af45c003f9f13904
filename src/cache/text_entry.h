// A small text kept from one start to the next, with what it depends on and a checksum.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace toto::cache {

struct TextEntry {
  std::optional<std::string> text;  // nothing if there is none, or none for this key
  std::string invalid;              // why a file that is there cannot be used, with its name
};

// What was written at `path` under this key. A damaged file is reported; one of another key is not,
// and the next write replaces it.
TextEntry read_text_entry(const std::string& path, std::string_view key);

// Errors are those of io::AtomicFile. `text` ends with a line's end.
void write_text_entry(const std::string& path, std::string_view key, std::string_view text);

}  // namespace toto::cache
