// A file that is part of the program: tools/embed.cmake turns files into arrays of these.
#pragma once

#include <span>
#include <string_view>

namespace toto {

struct EmbeddedFile {
  std::string_view name;  // "index.html"
  std::string_view bytes;
};

// nullptr if there is no file of this name.
inline const EmbeddedFile* find_file(std::span<const EmbeddedFile> files, std::string_view name) {
  for (const EmbeddedFile& file : files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace toto
