#include "tables/series_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/series_columns.h"

namespace toto::tables {
namespace {

// The hint for a table that holds several series below each other under unknown column names.
constexpr std::string_view kLongNames =
    "a long table names its columns unique_id, ds and y (or item_id, timestamp, target)";

// Looks up a std::string key by a string_view without a temporary string.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// Sorts the rows of one file into groups, in one pass with one field in memory at a time.
class TableReader {
 public:
  TableReader(io::TextInput& input, const TableOptions& options)
      : file_(input.name()), options_(options), reader_(input, io::detect_delimiter(input)) {}

  SeriesTable read() {
    start();
    while (reader_.next_row()) read_row();
    return finish();
  }

  std::optional<SeriesTable> stream(const TakeRows& take) {
    take_ = &take;
    start();
    while (reader_.next_row()) {
      read_row();
      if (stopped_) return {};
    }
    SeriesTable table = finish();
    if (!take(table, std::move(table.groups.back()))) return {};
    table.groups.clear();
    return table;
  }

 private:
  void start() {
    read_header();
    adopt(plan_columns(file_, table_.header_line, names_, options_, table_.warnings));
  }

  SeriesTable finish() {
    if (table_.groups.empty()) {
      fail(ErrorCode::corrupt_file,
           "{}: there is a header but no row of data, expected at least one",
           io::place(file_, table_.header_line, 1));
    }
    put_in_order();
    table_.style = clock_.style();
    return std::move(table_);
  }

  enum : int { kIgnored = -1, kTime = -2, kId = -3 };  // roles; from 0 on: the slot of a value

  void read_header() {
    if (!reader_.next_row()) {
      fail(ErrorCode::corrupt_file, "{}: the file is empty, expected a header and rows of data",
           io::place(file_, 1, 1));
    }
    std::unordered_set<std::string> seen;
    while (reader_.next_field()) {
      std::string name(trimmed(reader_.field()));
      const std::string complaint = name.empty() ? "" : name_complaint(name);
      if (!complaint.empty()) {
        fail(ErrorCode::corrupt_file, "{}: the column name {}", reader_.where(), complaint);
      }
      if (!name.empty() && !seen.insert(name).second) {
        fail(ErrorCode::corrupt_file, "{}: the column name {} appears twice, expected it once",
             reader_.where(), quoted(name));
      }
      names_.push_back(std::move(name));
    }
    table_.header_line = reader_.line();
    // Without this check a first line of data would silently become the column names.
    float number = 0;
    Ticks time = 0;
    if (io::parse_cell(names_.front(), number) == io::CellKind::number ||
        TimeColumn().read(names_.front(), time).empty()) {
      fail(ErrorCode::corrupt_file,
           "{}: the first line begins with {}, expected column names; add a header line",
           io::place(file_, table_.header_line, 1), quoted(names_.front()));
    }
  }

  // Turns the plan into a role per column, so that reading a row needs one look-up per field.
  void adopt(const ColumnPlan& plan) {
    table_.format = plan.format;
    table_.time_name = names_[plan.time];
    roles_.assign(names_.size(), kIgnored);
    roles_[plan.time] = kTime;
    time_column_ = plan.time;
    if (plan.id) {
      table_.id_name = names_[*plan.id];
      roles_[*plan.id] = kId;
    }
    for (const std::size_t column : plan.values) {
      roles_[column] = static_cast<int>(table_.columns.size());
      table_.columns.push_back(names_[column]);
      table_.column_numbers.push_back(column + 1);
    }
    row_values_.resize(plan.values.size());
    row_exact_.resize(options_.exact ? plan.values.size() : 0);
    num_strict_ = plan.values.size() - plan.num_loose;
  }

  // Checks the number of fields before the row is used.
  void read_row() {
    group_ = 0;
    std::size_t num_fields = 0;
    std::int64_t line = 0;
    for (; reader_.next_field(); ++num_fields) {
      if (num_fields == 0) line = reader_.line();
      if (num_fields == names_.size()) {
        fail(ErrorCode::corrupt_file,
             "{}: the row has more than {} fields, expected {} as in the header; a comma inside a "
             "value needs quotes around it",
             reader_.where(), names_.size(), names_.size());
      }
      const int role = roles_[num_fields];
      if (role >= 0) {
        read_value(static_cast<std::size_t>(role), names_[num_fields]);
      } else if (role == kTime) {
        read_time();
      } else if (role == kId) {
        read_id();
      }
    }
    if (num_fields < names_.size()) {
      fail(ErrorCode::corrupt_file, "{}: the row has {} fields, expected {} as in the header",
           io::place(file_, line, num_fields), num_fields, names_.size());
    }
    append_row(line);
  }

  // Buffers a cell until the row is complete: its id and time may come after it.
  void read_value(std::size_t slot, const std::string& name) {
    const std::string_view text = trimmed(reader_.field());
    float& value = row_values_[slot];
    const io::CellKind cell = io::parse_cell(text, value);
    if (cell == io::CellKind::number) {
      if (options_.exact) row_exact_[slot] = io::exact_value(text);
      return;
    }
    if (cell == io::CellKind::missing || slot >= num_strict_) {
      value = std::numeric_limits<float>::quiet_NaN();
      if (options_.exact) row_exact_[slot] = value;
      return;
    }
    std::string hint;
    if (cell == io::CellKind::text && options_.columns.empty()) {
      hint = "; --columns can leave this column out";
      // Probably a long table under unknown column names.
      if (table_.format == InputFormat::csv_wide) {
        hint += fmt::format(", or if it says which series a row belongs to: {}", kLongNames);
      }
    }
    fail(ErrorCode::corrupt_file, "{}: {}{}", reader_.where(name), io::complaint(cell, text), hint);
  }

  // A blank time is an error: rows without a time have no place in a series.
  void read_time() {
    const std::string_view text = trimmed(reader_.field());
    if (io::is_missing(text) || equal_ignoring_case(text, "NaT")) {
      fail(ErrorCode::corrupt_file, "{}: the time is blank, expected one in every row",
           reader_.where(table_.time_name));
    }
    const std::string complaint = clock_.read(text, time_);
    if (!complaint.empty()) {
      fail(ErrorCode::corrupt_file, "{}: {}", reader_.where(table_.time_name), complaint);
    }
  }

  // Rows of one id are usually adjacent, so the previous row's group is tried first.
  void read_id() {
    const std::string_view id = reader_.field();
    if (last_group_ < table_.groups.size() && table_.groups[last_group_].id == id) {
      group_ = last_group_;
      return;
    }
    const auto found = group_of_.find(id);
    if (found != group_of_.end()) {
      stopped_ = take_ != nullptr;  // its earlier rows have been handed over
      group_ = found->second;
      return;
    }
    const std::string complaint = name_complaint(id);
    if (!complaint.empty()) {
      fail(ErrorCode::corrupt_file, "{}: the id {}", reader_.where(table_.id_name), complaint);
    }
    if (take_ != nullptr && !table_.groups.empty()) hand_over();
    group_ = table_.groups.size();
    group_of_.emplace(id, group_);
    add_group(std::string(id));
  }

  // While streaming there is at most one group: that of the previous row.
  void hand_over() {
    table_.style = clock_.style();
    TableRows rows = std::move(table_.groups.back());
    table_.groups.clear();
    stopped_ = !(*take_)(table_, std::move(rows));
  }

  void add_group(std::string id) {
    TableRows& rows = table_.groups.emplace_back();
    rows.id = std::move(id);
    rows.values.resize(table_.columns.size());
    rows.exact.resize(row_exact_.size());
  }

  // Times must increase within each id; rows of other ids may lie between them.
  void append_row(std::int64_t line) {
    if (stopped_) return;
    if (table_.groups.empty()) add_group("");
    TableRows& rows = table_.groups[group_];
    last_group_ = group_;
    if (rows.times.empty()) {
      rows.first_line = line;
    } else if (!continues(rows, line)) {
      return;
    }
    rows.times.push_back(time_);
    if (options_.keep_lines) rows.lines.push_back(line);
    for (std::size_t slot = 0; slot < row_values_.size(); ++slot) {
      rows.values[slot].push_back(row_values_[slot]);
    }
    for (std::size_t slot = 0; slot < row_exact_.size(); ++slot) {
      rows.exact[slot].push_back(row_exact_[slot]);
    }
  }

  // Whether the row comes after the last one of its id; false if it is that row again.
  bool continues(TableRows& rows, std::int64_t line) {
    const Ticks last = rows.times.back();
    if (options_.newest_first && time_ == last && repeats(rows)) {
      if (num_repeated_++ == 0) first_repeated_ = line;
      return false;
    }
    if (options_.newest_first && rows.times.size() == 1) rows.descending = time_ < last;
    if (time_ == last || (time_ < last) != rows.descending) fail_order(rows, line);
    return true;
  }

  bool repeats(const TableRows& rows) const {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (std::size_t slot = 0; slot < row_values_.size(); ++slot) {
      if (!same(row_values_[slot], rows.values[slot].back())) return false;
    }
    for (std::size_t slot = 0; slot < row_exact_.size(); ++slot) {
      if (!same(row_exact_[slot], rows.exact[slot].back())) return false;
    }
    return true;
  }

  // The oldest row first, and what was done to the rows in words.
  void put_in_order() {
    std::size_t num_reversed = 0;
    for (TableRows& rows : table_.groups) {
      if (!std::exchange(rows.descending, false)) continue;
      ++num_reversed;
      std::ranges::reverse(rows.times);
      std::ranges::reverse(rows.lines);
      for (auto& column : rows.values) std::ranges::reverse(column);
      for (auto& column : rows.exact) std::ranges::reverse(column);
    }
    if (num_reversed > 0) {
      table_.warnings.push_back(
          fmt::format("{}: the rows are newest first: read in reverse", file_));
    }
    if (num_repeated_ > 0) {
      table_.warnings.push_back(fmt::format(
          "{}: line {}: the row repeats the one before it: dropped{}", file_, first_repeated_,
          num_repeated_ == 1 ? "" : fmt::format(", and {} more like it", num_repeated_ - 1)));
    }
  }

  // A repeated time without an id column usually means several series below each other.
  [[noreturn]] void fail_order(const TableRows& rows, std::int64_t line) const {
    const std::string where =
        fmt::format("{} ({})", io::place(file_, line, time_column_ + 1), quoted(table_.time_name));
    const std::string of = rows.id.empty() ? "" : fmt::format(" of {}", quoted(rows.id));
    if (time_ == rows.times.back()) {
      const bool no_ids = table_.id_name.empty();
      fail(ErrorCode::corrupt_file, "{}: the time {}{} appears twice, expected it once{}{}", where,
           format_time(time_, clock_.style()), of,
           no_ids ? "; if a row belongs to one of several series: " : "",
           !no_ids ? ""
           : table_.format == InputFormat::csv_ohlcv
               ? "bars of several symbols have a symbol column"
               : kLongNames);
    }
    fail(ErrorCode::corrupt_file,
         "{}: the time {}{} comes after {}, expected increasing times; sort the file by time",
         where, format_time(time_, clock_.style()), of,
         format_time(rows.times.back(), clock_.style()));
  }

  const std::string& file_;
  const TableOptions& options_;
  io::CsvReader reader_;
  SeriesTable table_;
  TimeColumn clock_;
  std::vector<std::string> names_;  // of all columns
  std::vector<int> roles_;
  std::size_t time_column_ = 0;
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> group_of_;
  std::size_t last_group_ = 0;
  std::size_t num_strict_ = 0;      // slots before the loose ones
  const TakeRows* take_ = nullptr;  // set while streaming
  bool stopped_ = false;            // streaming this table is not possible
  std::size_t num_repeated_ = 0;    // rows dropped
  std::int64_t first_repeated_ = 0;
  // The row being read.
  std::size_t group_ = 0;
  Ticks time_ = 0;
  std::vector<float> row_values_;
  std::vector<double> row_exact_;
};

}  // namespace

std::string name_complaint(std::string_view name) {
  if (trimmed(name).empty()) return "is blank, expected a name";
  if (name.size() > io::kMaxNameBytes) {
    return fmt::format("has {} bytes, expected at most {}", name.size(), io::kMaxNameBytes);
  }
  if (first_invalid_utf8(name) < name.size()) {
    return fmt::format("{} is not valid UTF-8; save the file as UTF-8", quoted(name));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::ranges::any_of(name, is_control)) {
    return fmt::format("{} has a control character, expected text on one line", quoted(name));
  }
  return {};
}

std::vector<std::string> header_names(const io::TextInput& input) {
  io::MemorySource source(input.head());
  io::TextInput head(source, input.name());
  io::CsvReader reader(head, io::detect_delimiter(head));
  std::vector<std::string> names;
  if (!reader.next_row()) return names;
  while (reader.next_field()) names.emplace_back(trimmed(reader.field()));
  return names;
}

SeriesTable read_table(io::TextInput& input, const TableOptions& options) {
  return TableReader(input, options).read();
}

std::optional<SeriesTable> stream_table(io::TextInput& input, const TableOptions& options,
                                        const TakeRows& take) {
  return TableReader(input, options).stream(take);
}

}  // namespace toto::tables
