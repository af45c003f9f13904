// The data files of a run, by their hashes: a repeated run reports files that have changed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/json.h"
#include "tables/bars.h"

namespace toto::backtest {

struct DataFile {
  std::string file = {};
  std::string sha256 = {};
  std::size_t rows = 0;  // bars of all its symbols
  std::string first = {}, last = {};
  bool operator==(const DataFile&) const = default;
};

// One for each file, in the order of `bars`.
std::vector<DataFile> data_files(std::span<const tables::Bars> bars);

// The "data" array of a results.json.
void write_data_files(io::JsonWriter& json, std::span<const DataFile> files);
// Empty where a results.json has none. Error(corrupt_file) naming `path`.
std::vector<DataFile> read_data_files(const io::Json& results, const std::string& path);

// One sentence per file that changed, is new or is missing; `origin` names the earlier run.
std::vector<std::string> data_changes(std::span<const DataFile> earlier,
                                      std::span<const DataFile> now, const std::string& origin);

}  // namespace toto::backtest
