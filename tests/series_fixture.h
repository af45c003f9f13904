// Series out of text, as if it were a file.
#pragma once

#include <string_view>

#include "tables/series_file.h"

namespace toto::tables {

inline InputData read(std::string_view text, const ReadOptions& options = {}) {
  io::MemorySource source(text);
  return read_series(source, "data.csv", options);
}

}  // namespace toto::tables
