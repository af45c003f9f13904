#include "cli/held_out_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/settings/locate_model.h"
#include "tables/series_file.h"

namespace toto::cli {

namespace fs = std::filesystem;

namespace {

tables::InputData read_column(const std::string& file, const std::string& column) {
  try {
    return tables::read_series(file, {.columns = {column}});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(error.code(), "{}; --column chooses another one", error.what());
  }
}

}  // namespace

std::vector<validate::Symbol> read_symbols(const std::vector<std::string>& files,
                                           const std::string& column) {
  std::vector<validate::Symbol> symbols;
  for (const std::string& file : files) {
    tables::InputData input = read_column(file, column);
    print_warnings(input.warnings);
    const bool alone = input.series.size() == 1;
    for (tables::InputSeries& series : input.series) {
      std::string name = alone ? fs::path(file).stem().string() : series.id;
      const bool taken = std::any_of(symbols.begin(), symbols.end(),
                                     [&](const auto& other) { return other.name == name; });
      if (taken) {
        fail(ErrorCode::corrupt_file,
             "{}: the symbol {} was read before; name each symbol once, or rename the file", file,
             quoted(name));
      }
      symbols.push_back({.name = std::move(name), .values = std::move(series.values)});
    }
  }
  return symbols;
}

std::vector<std::string> bundled_symbol_files() {
  constexpr std::array kSymbols = {"AAPL", "GOOGL", "AMD", "BTCUSD", "ETHUSD"};
  std::string places;
  for (const fs::path& folder : bundled_folders("examples/data")) {
    std::vector<std::string> files;
    std::error_code error;
    for (const char* symbol : kSymbols) {
      const fs::path file = folder / (std::string(symbol) + ".csv");
      if (fs::exists(file, error)) files.push_back(file.string());
    }
    if (files.size() == kSymbols.size()) return files;
    places += (places.empty() ? "" : ", ") + folder.string();
  }
  fail(ErrorCode::not_found,
       "the example data is not there, looked in {}; name files of real prices with --data",
       places);
}

}  // namespace toto::cli
