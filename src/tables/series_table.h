// A CSV of series as it is in the file: roles of the columns, rows checked, nothing filled in.
// series_file.h makes forecast input from it; bars.h reads bars with their line numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv.h"
#include "tables/timestamps.h"

namespace toto::tables {

// Each has a row in the table of series_file.cc. `automatic`: detected from the input.
enum class InputFormat { automatic, csv_long, csv_wide, csv_ohlcv, jsonl };

struct TableOptions {
  InputFormat format = InputFormat::csv_wide;  // a CSV
  // The columns to read, in this order; empty: `y` of a long table, `close` of an OHLCV one, all
  // but the time of a wide one. Other columns may hold anything. Names are case-insensitive unless
  // that is ambiguous.
  std::vector<std::string> columns = {};
  // Also read if the table has them and no id column.
  std::vector<std::string> also = {};
  // Reads open, high, low and close of an OHLCV table as variates instead of `close` alone; only
  // without `columns` and without a symbol column.
  bool whole_bars = false;
  // Read last if the table has them; a cell that is not a number counts as missing.
  std::vector<std::string> loose = {};
  std::string time_name = {};  // of the time column; empty: found by its name, else the first one
  bool keep_lines = false;     // fill TableRows::lines
  bool exact = false;          // fill TableRows::exact
  // Rows newest first are read in reverse, rows equal to the one before them are dropped, both with
  // a warning; else they are refused.
  bool newest_first = false;
};

// The rows of one id, or of a whole file without an id column. Times increase strictly.
struct TableRows {
  std::string id = {};
  std::int64_t first_line = 0;
  std::vector<Ticks> times = {};
  std::vector<std::int64_t> lines = {};
  std::vector<std::vector<float>> values = {};  // [column][row]; NaN is missing
  std::vector<std::vector<double>> exact = {};  // the same values in double precision
  bool descending = false;                      // as long as it is being read
};

struct SeriesTable {
  InputFormat format = InputFormat::csv_wide;
  std::int64_t header_line = 1;
  std::string id_name = {};  // empty: there is no id column
  std::string time_name = {};
  TimeStyle style = {};
  std::vector<std::string> columns = {};         // those read, as spelled in the header
  std::vector<std::size_t> column_numbers = {};  // their positions in the file, from 1
  std::vector<TableRows> groups = {};            // in file order, none of them empty
  std::vector<std::string> warnings = {};
};

// Error(corrupt_file) with file, line and column for bad contents, Error(invalid_argument) for
// columns that the file does not have.
SeriesTable read_table(io::TextInput& input, const TableOptions& options);

// The same with one group in memory at a time: `take` receives a group when the next id begins, and
// the table as known by then. Returns the table without groups, or nothing if `take` returns false
// or an id occurs again after others: the caller must then use read_table.
using TakeRows = std::function<bool(const SeriesTable& table, TableRows rows)>;
std::optional<SeriesTable> stream_table(io::TextInput& input, const TableOptions& options,
                                        const TakeRows& take);

// The names in the header, without consuming it.
std::vector<std::string> header_names(const io::TextInput& input);

// Checks a column name or series id (UTF-8, not blank, no control characters, at most
// kMaxNameBytes). Empty if valid, otherwise what is wrong.
std::string name_complaint(std::string_view name);

}  // namespace toto::tables
