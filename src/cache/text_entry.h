// A small text cached on disk with the key it depends on and a checksum.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/cache_file.h"

namespace toto::cache {

struct TextEntry {
  std::optional<std::string> text;  // empty if there is no file, or one with another key
  std::string invalid;              // the file's name and why it cannot be used
};

// Reads the text written to `entry` under this key. A damaged file is reported; a file with another
// key is not, and the next write replaces it.
TextEntry read_text_entry(const io::CacheFile& entry, std::string_view key);

// Errors are those of io::AtomicFile. `text` must end with a newline.
void write_text_entry(const io::CacheFile& entry, std::string_view key, std::string_view text);

}  // namespace toto::cache
