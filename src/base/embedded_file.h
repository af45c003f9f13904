// A file compiled into the program; tools/embed.cmake generates the arrays.
#pragma once

#include <span>
#include <string_view>

namespace toto {

struct EmbeddedFile {
  std::string_view name;  // "index.html"
  std::string_view bytes;
};

// nullptr if no file has this name.
inline const EmbeddedFile* find_file(std::span<const EmbeddedFile> files, std::string_view name) {
  for (const EmbeddedFile& file : files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace toto
