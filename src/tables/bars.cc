#include "tables/bars.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/sha256.h"
#include "tables/series_columns.h"
#include "tables/series_table.h"

namespace toto::tables {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kPriceColumns = {"open", "high", "low", "close"};

// Hashes the bytes while they are read: a pipe, or a file that changes, cannot be read twice.
class HashedSource final : public io::ByteSource {
 public:
  explicit HashedSource(io::ByteSource& source) : source_(source) {}
  std::size_t read(char* dst, std::size_t size) override {
    const std::size_t count = source_.read(dst, size);
    hash_.update(std::as_bytes(std::span(dst, count)));
    return count;
  }
  std::string hex_digest() { return hash_.hex_digest(); }

 private:
  io::ByteSource& source_;
  io::Sha256 hash_;
};

// A bar without a price cannot be traded, so a missing price is an error here, unlike in forecasts.
void check_price(const SeriesTable& table, const TableRows& rows, std::size_t column,
                 std::size_t row, const std::string& file) {
  const float price = rows.values[column][row];
  if (price > 0) return;
  const std::string where =
      fmt::format("{} ({})", io::place(file, rows.lines[row], table.column_numbers[column]),
                  quoted(table.columns[column]));
  if (std::isnan(price)) {
    fail(ErrorCode::corrupt_file,
         "{}: the price is missing, expected a number above 0; fill it in or remove the row",
         where);
  }
  fail(ErrorCode::corrupt_file, "{}: the price is {}, expected a number above 0", where,
       rows.exact[column][row]);
}

bool is_csv(const fs::directory_entry& entry) {
  std::error_code ignored;
  return equal_ignoring_case(entry.path().extension().string(), ".csv") &&
         !entry.is_directory(ignored);
}

// The file itself, or the CSV files of a folder sorted by name.
std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  fs::directory_iterator folder(path, error);
  if (error) {
    fail(ErrorCode::not_found, "{}: the folder cannot be read: {}", path, error.message());
  }
  for (const fs::directory_entry& entry : folder) {
    if (is_csv(entry)) files.push_back(entry.path().string());
  }
  if (files.empty()) {
    fail(ErrorCode::corrupt_file, "{}: the folder has no .csv file, expected bars in at least one",
         path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }
std::string symbol_of(const std::string& path) { return fs::path(path).stem().string(); }

// Adds the bars of a file. One whose header has other columns is skipped or refused.
void read_into(io::ByteSource& bytes, const std::string& file, const std::string& symbol,
               bool may_skip, BarFiles& all) {
  HashedSource source(bytes);
  io::TextInput text(source, file);
  if (may_skip) {
    const std::vector<std::string> names = header_names(text);
    if (!names.empty() && !is_ohlcv_header(names)) {
      all.notes.push_back(
          fmt::format("{}: has no columns open, high, low and close: not bars, skipped", file));
      return;
    }
  }
  TableOptions options;
  options.format = InputFormat::csv_ohlcv;
  options.columns.assign(kPriceColumns.begin(), kPriceColumns.end());
  options.loose = {"volume"};
  options.keep_lines = true;
  options.exact = true;
  options.newest_first = true;
  SeriesTable table = read_table(text, options);
  const std::string sha256 = source.hex_digest();
  std::ranges::move(table.warnings, std::back_inserter(all.notes));
  for (TableRows& rows : table.groups) {
    for (std::size_t row = 0; row < rows.times.size(); ++row) {
      for (std::size_t column = 0; column < kPriceColumns.size(); ++column) {
        check_price(table, rows, column, row, file);
      }
    }
    Bars& bars = all.bars.emplace_back();
    bars.symbol = table.id_name.empty() ? symbol : rows.id;
    if (const std::string complaint = name_complaint(bars.symbol); !complaint.empty()) {
      fail(ErrorCode::corrupt_file, "{}: the symbol {}", file, complaint);
    }
    bars.file = file;
    bars.file_sha256 = sha256;
    bars.style = table.style;
    bars.times = std::move(rows.times);
    bars.lines = std::move(rows.lines);
    bars.open = std::move(rows.exact[0]);
    bars.high = std::move(rows.exact[1]);
    bars.low = std::move(rows.exact[2]);
    bars.close = std::move(rows.exact[3]);
    if (rows.exact.size() > kPriceColumns.size()) bars.volume = std::move(rows.exact[4]);
  }
}

}  // namespace

std::string_view name_of(Target target) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"close", "low", "high", "open"};
  return kNames[static_cast<std::size_t>(target)];
}

const std::vector<double>& Bars::prices(Target target) const {
  switch (target) {
    case Target::close:
      break;
    case Target::low:
      return low;
    case Target::high:
      return high;
    case Target::open:
      return open;
  }
  return close;
}

std::vector<Bars> read_bars(const std::string& path) {
  const auto source = io::open_source(path);
  return read_bars(*source, shown_name(path), symbol_of(path));
}

std::vector<Bars> read_bars(io::ByteSource& bytes, const std::string& file,
                            const std::string& symbol) {
  BarFiles all;
  read_into(bytes, file, symbol, false, all);
  return std::move(all.bars);
}

void add_bars(io::ByteSource& source, const std::string& file, const std::string& symbol,
              BarFiles& all) {
  read_into(source, file, symbol, true, all);
}

void require_bars(const BarFiles& all) {
  if (!all.bars.empty() || all.notes.empty()) return;
  fail(ErrorCode::corrupt_file, "there are no bars: {}", all.notes.front());
}

// Symbols must be unique over all files: results are reported by symbol.
BarFiles read_all_bars(const std::vector<std::string>& paths) {
  BarFiles all;
  std::map<std::string, std::string> file_of;
  for (const std::string& path : paths) {
    for (const std::string& file : files_of(path)) {
      const std::size_t before = all.bars.size();
      add_bars(*io::open_source(file), shown_name(file), symbol_of(file), all);
      for (const Bars& bars : std::span(all.bars).subspan(before)) {
        const auto [known, is_new] = file_of.try_emplace(bars.symbol, bars.file);
        if (is_new) continue;
        fail(ErrorCode::corrupt_file,
             "{}: the symbol {} is also in {}, expected it in one file; rename one of them",
             bars.file, quoted(bars.symbol), known->second);
      }
    }
  }
  require_bars(all);
  return all;
}

}  // namespace toto::tables
