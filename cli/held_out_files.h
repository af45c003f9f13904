// Real data that forecasts are judged by, for `toto compare-modes` and `toto stress`.
#pragma once

#include <string>
#include <vector>

#include "validate/held_out.h"

namespace toto::cli {

// The series of one column of each file, named after the file, or by their ids where a file has
// several. Warnings of the reader go to stderr. Error(corrupt_file) for a name that appears twice.
std::vector<validate::Symbol> read_symbols(const std::vector<std::string>& files,
                                           const std::string& column);

// The five symbols that come with the command. Error(not_found) where they are not there.
std::vector<std::string> bundled_symbol_files();

}  // namespace toto::cli
