#include "io/csv.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "io/regular_file.h"

namespace toto::io {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;  // larger ones are not faster
constexpr std::size_t kHeadBytes = std::size_t{1} << 20;
constexpr std::size_t kFirstBytes = std::size_t{1} << 14;  // doubles up to kHeadBytes
static_assert(kBufferBytes > 2 * kMaxFieldBytes);

// Owns the descriptor unless it is standard input.
class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~FileSource() override {
    if (fd_ != STDIN_FILENO) ::close(fd_);
  }
  std::size_t read(char* dst, std::size_t size) override {
    for (;;) {
      const ssize_t got = ::read(fd_, dst, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      if (errno == EISDIR) fail(ErrorCode::corrupt_file, "{} is a folder, expected a file", path_);
      fail(ErrorCode::corrupt_file, "{} cannot be read: {}", path_, std::strerror(errno));
    }
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::string& path) {
  if (path == "-") return std::make_unique<FileSource>("standard input", STDIN_FILENO);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_open(path, errno);
  return std::make_unique<FileSource>(path, fd);
}

std::size_t MemorySource::read(char* dst, std::size_t size) {
  const std::size_t count = bytes_.copy(dst, size);
  bytes_.remove_prefix(count);
  return count;
}

// ----------------------------------------------------------------------------------------- head

TextInput::TextInput(ByteSource& source, std::string name)
    : source_(source), name_(std::move(name)) {
  std::size_t size = 0;
  bool has_text = false;
  bool in_quotes = false;
  for (bool has_line = false; !has_line && size < kHeadBytes;) {  // a pipe may return few bytes
    if (size == head_.size()) head_.resize(std::max(kFirstBytes, 2 * size));
    const std::size_t got = source_.read(head_.data() + size, head_.size() - size);
    if (got == 0) break;
    for (const char c : std::string_view(head_).substr(size, got)) {
      const bool line_end = c == '\n' || c == '\r';
      in_quotes ^= c == '"';
      has_line |= line_end && has_text && !in_quotes;
      has_text |= !line_end && c != ' ' && c != '\t';
    }
    size += got;
  }
  head_.resize(size);
  head_.shrink_to_fit();
  const std::string_view start = std::string_view(head_).substr(0, 2);
  const bool marked = start == "\xFF\xFE" || start == "\xFE\xFF";
  // UTF-16 without a byte order mark: one of the first two bytes of ASCII text is zero.
  const bool half_empty = start.size() == 2 && (start[0] == '\0') != (start[1] == '\0');
  if (marked || half_empty) {
    fail(ErrorCode::corrupt_file,
         "{}: line 1, column 1: the text is UTF-16, expected UTF-8; save the file as UTF-8", name_);
  }
  if (head_.starts_with("\xEF\xBB\xBF")) head_.erase(0, 3);
}

std::size_t TextInput::read(char* dst, std::size_t size) {
  if (head_read_ < head_.size()) {
    const std::size_t count = head_.copy(dst, size, head_read_);
    head_read_ += count;
    return count;
  }
  return source_.read(dst, size);
}

char detect_delimiter(const TextInput& input) {
  const std::string_view head = input.head();
  bool in_quotes = false;
  bool semicolon = false;
  bool tab = false;
  for (std::size_t i = std::min(head.find_first_not_of(" \r\n"), head.size()); i < head.size();
       ++i) {
    const char c = head[i];
    if (c == '"') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (c == ',') return ',';
    if (c == '\n' || c == '\r') break;
    semicolon |= c == ';';
    tab |= c == '\t';
  }
  if (semicolon && tab) {
    fail(ErrorCode::corrupt_file,
         "{}: line 1, column 1: the header has semicolons and tabs but no comma, expected one kind "
         "of delimiter; separate the columns with commas",
         input.name());
  }
  return semicolon ? ';' : tab ? '\t' : ',';
}

// ------------------------------------------------------------------------------------ tokeniser

CsvReader::CsvReader(TextInput& input, char delimiter)
    : input_(input),
      delimiter_(delimiter),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {
  for (const char c : {delimiter, '\n', '\r', '"', '\0'}) {
    ends_plain_run_[static_cast<unsigned char>(c)] = true;
  }
}

// Keeps [begin_, end_), which is at most one field of kMaxFieldBytes and therefore always fits.
bool CsvReader::refill() {
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  pos_ -= begin_;
  end_ -= begin_;
  begin_ = 0;
  const std::size_t got = input_.read(buffer_.get() + end_, kBufferBytes - end_);
  end_ += got;
  return got > 0;
}

// The next byte without consuming it; -1 at the end of the input.
int CsvReader::peek() {
  if (pos_ == end_) {
    begin_ = pos_;
    if (!refill()) return -1;
  }
  return static_cast<unsigned char>(buffer_[pos_]);
}

void CsvReader::end_row(char line_end) {
  row_ended_ = true;
  skip_line_feed_ = line_end == '\r';
  ++next_line_;
}

bool CsvReader::next_row() {
  while (next_field()) {
  }
  for (int c = peek(); c >= 0; c = peek()) {
    const bool belongs_to_cr = std::exchange(skip_line_feed_, false) && c == '\n';
    if (c != '\n' && c != '\r') {
      row_ended_ = false;
      column_ = 0;
      return true;
    }
    ++pos_;
    if (!belongs_to_cr) end_row(static_cast<char>(c));
  }
  return false;
}

// The fast path: scans plain bytes in the buffer and refills it only at its end.
bool CsvReader::next_field() {
  if (row_ended_) return false;
  line_ = next_line_;
  if (++column_ > kMaxColumns) {
    fail(ErrorCode::corrupt_file,
         "{}: the row goes on after {} columns, expected at most that many", where(), kMaxColumns);
  }
  begin_ = pos_;
  for (;;) {
    const char* const bytes = buffer_.get();
    while (pos_ < end_ && !ends_plain_run_[static_cast<unsigned char>(bytes[pos_])]) ++pos_;
    if (pos_ - begin_ > kMaxFieldBytes) {
      fail(ErrorCode::corrupt_file,
           "{}: the field is longer than {} bytes, expected at most that many", where(),
           kMaxFieldBytes);
    }
    if (pos_ < end_ || !refill()) return finish_unquoted();
  }
}

// Called at the byte that ended a run of plain bytes, or at the end of the file.
bool CsvReader::finish_unquoted() {
  const std::string_view text(buffer_.get() + begin_, pos_ - begin_);
  field_ = trimmed(text);
  if (pos_ == end_) {
    row_ended_ = true;
    return true;
  }
  const char c = buffer_[pos_];
  if (c == '\0') {
    fail(ErrorCode::corrupt_file,
         "{}: a NUL byte, expected text; the file may be binary or damaged", where());
  }
  if (c == '"') {
    if (field_.empty()) return read_quoted();
    fail(ErrorCode::corrupt_file,
         "{}: a quote inside the unquoted field {}, expected the whole field in quotes and quotes "
         "inside it doubled",
         where(), quoted(field_));
  }
  ++pos_;
  if (c != delimiter_) end_row(c);
  return true;
}

// Copies the field into unquoted_, because doubled quotes become single ones.
bool CsvReader::read_quoted() {
  ++pos_;  // the opening quote
  unquoted_.clear();
  bool after_cr = false;
  for (;;) {
    const int c = peek();
    if (c < 0) {
      fail(ErrorCode::corrupt_file,
           "{}: the quote that opens here is never closed, expected a closing quote before the end "
           "of the file",
           where());
    }
    if (c == 0) {
      fail(ErrorCode::corrupt_file,
           "{}: a NUL byte inside quotes, expected text; the file may be binary or damaged",
           where());
    }
    ++pos_;
    if (c == '"') {
      if (peek() != '"') break;
      ++pos_;
    }
    if (c == '\r' || (c == '\n' && !after_cr)) ++next_line_;
    after_cr = c == '\r';
    unquoted_ += static_cast<char>(c);
    if (unquoted_.size() > kMaxFieldBytes) {
      fail(ErrorCode::corrupt_file,
           "{}: the quoted field is longer than {} bytes, expected at most that many; a closing "
           "quote may be missing",
           where(), kMaxFieldBytes);
    }
  }
  field_ = unquoted_;
  for (int c = peek(); c >= 0; c = peek()) {
    ++pos_;
    if (c == static_cast<unsigned char>(delimiter_)) return true;
    if (c == '\n' || c == '\r') {
      end_row(static_cast<char>(c));
      return true;
    }
    if (c != ' ' && c != '\t') {
      fail(ErrorCode::corrupt_file,
           "{}: text after the closing quote of {}, expected the delimiter or the end of the line; "
           "quotes inside a quoted field are doubled",
           where(), quoted(field_));
    }
  }
  row_ended_ = true;
  return true;
}

std::string CsvReader::where() const { return place(input_.name(), line_, column_); }

std::string CsvReader::where(std::string_view column_name) const {
  return fmt::format("{} ({})", where(), quoted(column_name));
}

std::string place(std::string_view file, std::int64_t line, std::size_t column) {
  return fmt::format("{}: line {}, column {}", file, line, column);
}

// ---------------------------------------------------------------------------------------- cells

bool is_missing(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() > 4) return false;
  for (const std::string_view spelling : {"na", "nan", "null", "none"}) {
    if (equal_ignoring_case(text, spelling)) return true;
  }
  return false;
}

bool to_float(double number, float& value) noexcept {
  constexpr double kRoundsToInfinity = 0x1.ffffffp127;  // halfway from the largest float to 2^128
  if (!(std::abs(number) < kRoundsToInfinity)) return false;
  value = static_cast<float>(number);
  return true;
}

CellKind parse_cell(std::string_view text, float& value) noexcept {
  std::string_view digits = text;
  const bool signed_text = !digits.empty() && (digits[0] == '-' || digits[0] == '+');
  if (signed_text) digits.remove_prefix(1);
  // from_chars accepts "inf", "nan" and a minus but not a plus: require a digit or point first.
  if (digits.empty() || !(is_digit(digits[0]) || digits[0] == '.')) {
    if (!signed_text && is_missing(text)) return CellKind::missing;
    const bool infinite =
        equal_ignoring_case(digits, "inf") || equal_ignoring_case(digits, "infinity");
    return infinite ? CellKind::infinite : CellKind::text;
  }
  const char* const begin = digits.data();
  const char* const end = begin + digits.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) {  // too large or too small: a double shows which
    double wide = 0;
    error = std::from_chars(begin, end, wide).ec;
    if (stop == end && (error != std::errc() || wide > 1)) return CellKind::beyond_float;
    value = 0;
  }
  if (error != std::errc() || stop != end) {
    const bool has_comma = digits.find(',') != std::string_view::npos;
    const bool only_digits = digits.find_first_not_of("0123456789,.") == std::string_view::npos;
    return has_comma && only_digits ? CellKind::decimal_comma : CellKind::text;
  }
  if (signed_text && text[0] == '-') value = -value;
  return CellKind::number;
}

double exact_value(std::string_view text) noexcept {
  if (text.starts_with('+')) text.remove_prefix(1);  // from_chars does not accept it
  double value = 0;                                  // stays 0 for numbers too small for a double
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string complaint(CellKind cell, std::string_view text) {
  switch (cell) {
    case CellKind::infinite:
      return fmt::format("{} is not finite, expected a number or an empty cell", quoted(text));
    case CellKind::beyond_float:
      return fmt::format("{} is beyond float32, expected a magnitude of at most 3.4028235e38",
                         quoted(text));
    case CellKind::decimal_comma:
      return fmt::format(
          "{} has a decimal comma or thousands separator, expected a plain number such as 1234.5",
          quoted(text));
    case CellKind::missing:
      return fmt::format("{} is missing, expected a number", quoted(text));
    case CellKind::number:
    case CellKind::text:
      break;
  }
  return fmt::format("{} is text, expected a number or an empty cell", quoted(text));
}

std::string csv_field(std::string_view text) {
  constexpr std::string_view kFormulaStarts = "=+-@";
  const bool plain = !text.empty() && text.find_first_of(",;\"\r\n\t") == std::string_view::npos &&
                     trimmed(text).size() == text.size() &&
                     kFormulaStarts.find(text.front()) == std::string_view::npos;
  if (plain) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

}  // namespace toto::io
