// A streaming CSV tokeniser (RFC 4180 and common variants) and the parser of numeric cells.
//
// Input is untrusted. Memory is bounded by the limits below, not by the length of a line or file: a
// 1 GB field is refused after 64 kB. Every error names file, line and column.
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

// A stream of bytes: a file, a pipe, memory. Not thread-safe.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  virtual std::size_t read(char* dst, std::size_t size) = 0;  // bytes read; 0 only at the end
};

// `path` "-" is standard input. Pipes are accepted, folders are not: Error(not_found,
// corrupt_file).
std::unique_ptr<ByteSource> open_source(const std::string& path);

// Reads from memory that the caller keeps alive.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::size_t read(char* dst, std::size_t size) override;

 private:
  std::string_view bytes_;
};

// A source with its beginning buffered: UTF-16 is refused, a UTF-8 byte order mark removed.
class TextInput {
 public:
  TextInput(ByteSource& source, std::string name);  // the source must outlive this
  const std::string& name() const { return name_; }
  // Holds the first line that is not blank, unless that is longer than 1 MB. Quoted line ends do
  // not end a line.
  std::string_view head() const { return head_; }
  std::size_t read(char* dst, std::size_t size);  // from the beginning, head included

 private:
  ByteSource& source_;
  std::string name_;
  std::string head_;
  std::size_t head_read_ = 0;
};

// The delimiter, judged by the first line: a comma if there is one, otherwise a semicolon or tab if
// only one of the two occurs. Error(corrupt_file) if both do.
char detect_delimiter(const TextInput& input);

// Rows and fields, one field in memory at a time. Line ends may be LF, CRLF, CR or mixed; blank
// lines and blanks around a quoted field are skipped. Not thread-safe.
class CsvReader {
 public:
  CsvReader(TextInput& input, char delimiter);  // the input must outlive this
  bool next_row();    // skips the rest of the current row; false at the end
  bool next_field();  // false after the last field of the row
  // Without quotes and surrounding blanks. Valid until the next call.
  std::string_view field() const { return field_; }
  std::int64_t line() const { return line_; }     // where the field begins, from 1
  std::size_t column() const { return column_; }  // the field's number in its row, from 1
  // `prices.csv: line 3, column 2`, and with a name `prices.csv: line 3, column 2 ("close")`.
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
  std::array<bool, 256> ends_plain_run_{};  // by byte: delimiter, line end, quote or NUL
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // of the field being read; refill() keeps it
  std::size_t pos_ = 0;
  std::size_t end_ = 0;
  std::string unquoted_;  // text of a quoted field, doubled quotes replaced by single ones
  std::string_view field_;
  std::size_t column_ = 0;
  std::int64_t line_ = 1;
  std::int64_t next_line_ = 1;
  bool row_ended_ = true;
  bool skip_line_feed_ = false;  // after a CR: an LF that follows immediately is part of it
};

// "prices.csv: line 3, column 2".
std::string place(std::string_view file, std::int64_t line, std::size_t column);

bool is_missing(std::string_view text);  // empty, NA, NaN, null, None, in any case

enum class CellKind { number, missing, text, infinite, beyond_float, decimal_comma };

// Parses trimmed text, correctly rounded to float32; smaller magnitudes become zero. `value` is set
// for CellKind::number only.
CellKind parse_cell(std::string_view text, float& value) noexcept;
// The value of text that parse_cell() accepted as a number, correctly rounded to double.
double exact_value(std::string_view text) noexcept;
// Rounds a double to float32; false if it is out of range or not finite.
bool to_float(double number, float& value) noexcept;
// The error text for a cell that is not a number: `"abc" is text, expected a number ...`.
std::string complaint(CellKind cell, std::string_view text);

// Text as an output field: quoted where RFC 4180 requires it and where a spreadsheet could read it
// as a formula (leading = + - @). The text itself is not changed.
std::string csv_field(std::string_view text);

}  // namespace toto::io
