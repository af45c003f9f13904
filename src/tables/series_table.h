// A CSV of series as it is in the file: the role of each column, rows checked, nothing filled in.
// The forecast input (series_file.h) is made from it; a backtest reads its bars here, lines and
// all.
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

// Each has a row in the table of series_file.cc. `automatic`: recognised by the input.
enum class InputFormat { automatic, csv_long, csv_wide, csv_ohlcv, jsonl };

struct TableOptions {
  InputFormat format = InputFormat::csv_wide;  // a CSV
  // The columns to read, in this order; empty: `y` of a long table, `close` of an OHLCV one, all
  // but the time of a wide one. Other columns may hold anything. Case matters only if it must.
  std::vector<std::string> columns = {};
  // Read besides, where the table has them and its series go by their columns, not by an id.
  std::vector<std::string> also = {};
  // Without `columns` and without a symbol column: open, high, low and close of an OHLCV table, the
  // variates of one series, instead of `close` alone.
  bool whole_bars = false;
  // Read behind all of these where the table has them; a cell that holds no number is missing.
  std::vector<std::string> loose = {};
  std::string time_name = {};  // of the time column; empty: found by its name, else the first one
  bool keep_lines = false;     // fill TableRows::lines
  bool exact = false;          // fill TableRows::exact
};

// The rows of one id; of the whole file when it has no id column. Times increase strictly.
struct TableRows {
  std::string id = {};
  std::int64_t first_line = 0;
  std::vector<Ticks> times = {};
  std::vector<std::int64_t> lines = {};
  std::vector<std::vector<float>> values = {};  // [column][row]; NaN is missing
  std::vector<std::vector<double>> exact = {};  // the same before they were rounded to float32
};

struct SeriesTable {
  InputFormat format = InputFormat::csv_wide;
  std::int64_t header_line = 1;
  std::string id_name = {};  // empty: there is no id column
  std::string time_name = {};
  TimeStyle style = {};
  std::vector<std::string> columns = {};         // the ones read, as the header spells them
  std::vector<std::size_t> column_numbers = {};  // their places in the file, from 1
  std::vector<TableRows> groups = {};            // in the order of the file, each with a row
  std::vector<std::string> warnings = {};
};

// Error(corrupt_file) with file, line and column for everything wrong in the file,
// Error(invalid_argument) for columns it does not have.
SeriesTable read_table(io::TextInput& input, const TableOptions& options);

// The same, one group in memory at a time: each is handed over when another id begins, with the
// table as far as it is known by then. Returns the table without groups, or nothing if `take`
// answers false or an id comes back after others: then only read_table can tell what the groups
// are.
using TakeRows = std::function<bool(const SeriesTable& table, TableRows rows)>;
std::optional<SeriesTable> stream_table(io::TextInput& input, const TableOptions& options,
                                        const TakeRows& take);

// The names in the header, which is looked at and not yet read.
std::vector<std::string> header_names(const io::TextInput& input);

// A column name or series id: UTF-8, not blank, at most kMaxNameBytes. Otherwise what is wrong.
std::string name_complaint(std::string_view name);

}  // namespace toto::tables
