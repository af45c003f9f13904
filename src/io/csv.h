// Text tables in: a streaming CSV tokeniser (RFC 4180 and its relatives) and the cells' numbers.
//
// Input is hostile. Memory is bounded by the limits below and not by the length of a line or file:
// a field of a gigabyte is refused after 64 kB of it. Every complaint names file, line and column.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace toto::io {

inline constexpr std::size_t kMaxColumns = 100'000;
inline constexpr std::size_t kMaxFieldBytes = 64 * 1024;
inline constexpr std::size_t kMaxNameBytes = 4 * 1024;  // column names and series ids

// Where bytes come from: a file, a pipe, memory. Not thread safe.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  virtual std::size_t read(char* dst, std::size_t size) = 0;  // 0 at the end only
};

// `path` "-" is standard input. Pipes are fine, folders are not: Error(not_found, corrupt_file).
std::unique_ptr<ByteSource> open_source(const std::string& path);

// A view of bytes the caller keeps alive.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::size_t read(char* dst, std::size_t size) override;

 private:
  std::string_view bytes_;
};

// A source whose beginning has been looked at: UTF-16 is refused, a UTF-8 byte order mark removed.
class TextInput {
 public:
  TextInput(ByteSource& source, std::string name);  // the source must outlive this
  const std::string& name() const { return name_; }
  // The first line that is not blank is in here, unless it is longer than 1 MB. A line goes on over
  // line ends in quotes.
  std::string_view head() const { return head_; }
  std::size_t read(char* dst, std::size_t size);  // from the beginning, head included

 private:
  ByteSource& source_;
  std::string name_;
  std::string head_;
  std::size_t head_read_ = 0;
};

// The delimiter of a table whose first line is in `head`: the comma if that line has one, else a
// semicolon or tab if it has only one of the two kinds. Error(corrupt_file) if it has both.
char detect_delimiter(const TextInput& input);

// Rows and fields, one field in memory at a time. Line ends may be LF, CRLF, CR, or mixed; blank
// lines are skipped; blanks around a quoted field are dropped.
class CsvReader {
 public:
  CsvReader(TextInput& input, char delimiter);  // the input must outlive this
  bool next_row();    // skips what is left of the row before; false at the end
  bool next_field();  // false after the last field of the row
  // Quotes removed, blanks around it removed. Valid until the next call.
  std::string_view field() const { return field_; }
  std::int64_t line() const { return line_; }     // where the field begins, from 1
  std::size_t column() const { return column_; }  // the field's number in its row, from 1
  // "prices.csv: line 3, column 2", and with a name "prices.csv: line 3, column 2 ("close")".
  std::string where() const;
  std::string where(std::string_view column_name) const;

 private:
  bool refill();
  int peek();
  void end_row(char line_end);
  bool finish_unquoted();
  bool read_quoted();

  TextInput& input_;
  char delimiter_;
  std::array<bool, 256> ends_plain_run_{};  // bytes the inner loop must stop at
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // of the field being read: what a refill has to keep
  std::size_t pos_ = 0;
  std::size_t end_ = 0;
  std::string unquoted_;  // text of a quoted field, doubled quotes undone
  std::string_view field_;
  std::size_t column_ = 0;
  std::int64_t line_ = 1;
  std::int64_t next_line_ = 1;
  bool row_ended_ = true;
  bool skip_line_feed_ = false;  // the line ended in CR: an LF right after it belongs to it
};

std::string place(std::string_view file, std::int64_t line, std::size_t column);

bool is_missing(std::string_view text);  // empty, NA, NaN, null, None, in any case

enum class Cell { number, missing, text, infinite, beyond_float, decimal_comma };

// Correctly rounded to float32; what is too small for it becomes zero. `text` is trimmed already.
Cell parse_cell(std::string_view text, float& value) noexcept;
// The same text, which parse_cell has found to be a number, correctly rounded to double.
double exact_value(std::string_view text) noexcept;
// A double as float32; false if it is beyond it or not finite.
bool to_float(double number, float& value) noexcept;
// For a cell that holds no number: `"abc" is text, expected a number ...`.
std::string complaint(Cell cell, std::string_view text);

// Text as a field of a CSV of ours: in quotes where RFC 4180 wants them, and where a spreadsheet
// could take it for a formula (= + - @ in front). Nothing is put before it: the data stays what it
// was.
std::string csv_field(std::string_view text);

}  // namespace toto::io
