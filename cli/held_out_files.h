// Real data that forecasts are judged by, for `toto compare-modes` and `toto stress`.
#pragma once

#include <string>
#include <vector>

#include "validate/held_out.h"

namespace toto::cli {

// The series of one column of each file: a symbol is called as its file, or by its id where a file
// has several. What the reader has to say goes to stderr. Error(corrupt_file) for two of one name.
std::vector<validate::Symbol> read_symbols(const std::vector<std::string>& files,
                                           const std::string& column);

// The five symbols that come with the command. Error(not_found) where they are not there.
std::vector<std::string> bundled_symbol_files();

}  // namespace toto::cli
