// Interprets the header of a table: which format it has and the role of each column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tables/series_table.h"

namespace toto::tables {

// Columns by their positions, from 0.
struct ColumnPlan {
  InputFormat format = InputFormat::csv_wide;
  std::optional<std::size_t> id = {};
  std::size_t time = 0;
  std::vector<std::size_t> values = {};
  std::size_t num_loose = 0;  // the last ones of `values` are loose, see TableOptions
};

// Whether these column names are those of a long table, or of bars.
bool is_long_header(std::span<const std::string> names);
bool is_ohlcv_header(std::span<const std::string> names);

// Error(corrupt_file) if the header does not fit the format, Error(invalid_argument) for columns it
// does not have. Adds a warning for columns that are not read.
ColumnPlan plan_columns(const std::string& file, std::int64_t header_line,
                        const std::vector<std::string>& names, const TableOptions& options,
                        std::vector<std::string>& warnings);

}  // namespace toto::tables
