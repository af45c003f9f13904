#include "tables/series_jsonl.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "tables/series_table.h"

namespace toto::tables {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

// Lines ended by LF, CRLF or CR; inside JSON text a CR could only be white space.
class LineReader {
 public:
  explicit LineReader(io::TextInput& input) : input_(input) {}

  // False at the end. The line is valid until the next call.
  bool next(std::string_view& line) {
    ++number_;
    begin_ = next_begin_;
    for (std::size_t searched = begin_;;) {
      const std::size_t end = buffer_.find_first_of("\r\n", searched);
      if (end != std::string::npos && (buffer_[end] == '\n' || end + 1 < buffer_.size())) {
        line = std::string_view(buffer_).substr(begin_, end - begin_);
        next_begin_ = end + (buffer_.compare(end, 2, "\r\n") == 0 ? 2 : 1);
        return true;
      }
      searched = std::min(end, buffer_.size()) - begin_;
      if (searched > kMaxLineBytes) {
        fail(ErrorCode::corrupt_file,
             "{}: line {}: longer than {} bytes, expected at most that many", input_.name(),
             number_, kMaxLineBytes);
      }
      if (!read_more()) {
        line = std::string_view(buffer_).substr(0, searched);
        next_begin_ = buffer_.size();
        return !buffer_.empty();
      }
    }
  }
  std::int64_t number() const { return number_; }

 private:
  bool read_more() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t size = buffer_.size();
    buffer_.resize(size + kChunkBytes);
    const std::size_t got = input_.read(buffer_.data() + size, kChunkBytes);
    buffer_.resize(size + got);
    return got > 0;
  }

  io::TextInput& input_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t next_begin_ = 0;
  std::int64_t number_ = 0;
};

// Reads one file; errors name its line.
class JsonLinesReader {
 public:
  JsonLinesReader(io::TextInput& input, const TakeJsonSeries& take)
      : file_(input.name()), lines_(input), take_(take) {}

  JsonLines read() {
    for (std::string_view line; lines_.next(line);) {
      if (line.find_first_not_of(" \t") != std::string_view::npos) read_line(line);
    }
    if (result_.num_series == 0) {
      fail(ErrorCode::corrupt_file,
           "{}: line 1: the file is empty, expected lines such as {{\"start\": ..., \"target\": "
           "[...], \"item_id\": ...}}",
           file_);
    }
    if (!ignored_.empty()) {
      std::string names;
      for (const std::string& name : ignored_) names += (names.empty() ? "" : ", ") + quoted(name);
      result_.warnings.push_back(fmt::format("{}: fields that are not used: {}", file_, names));
    }
    result_.style = clock_.style();
    return std::move(result_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::corrupt_file, "{}: line {}: {}", file_, lines_.number(),
         fmt::format(format, std::forward<Args>(args)...));
  }

  io::Json parse(std::string_view line) {
    try {
      return io::parse_json(line, file_);
    } catch (const Error&) {
      // Parse again with the earlier lines as blank ones, so that the error names the right line.
      const auto before = static_cast<std::size_t>(lines_.number() - 1);
      const std::string text = std::string(before, '\n').append(line);
      if (result_.num_series == 0) refuse_document(text);
      return io::parse_json(text, file_);
    }
  }

  [[noreturn]] void fail_document(std::int64_t number, std::string_view what,
                                  std::string_view advice) const {
    fail(
        ErrorCode::corrupt_file,
        "{}: line {}: this looks like {}, expected JSON lines: one object per line with \"start\", "
        "\"target\" and maybe \"item_id\"; {}",
        file_, number, what, advice);
  }
  [[noreturn]] void fail_array(std::int64_t number) const {
    fail_document(number, "a JSON array", "`jq -c '.[]'` writes one element per line");
  }

  // A document over many lines is the usual mistake, and the parser's error about its first line
  // would not help. Returns if `first` is merely damaged. Reads on, which invalidates the current
  // line.
  void refuse_document(std::string_view first) {
    const std::int64_t number = lines_.number();
    const char bracket = first[first.find_first_not_of(" \t\n")];
    if (bracket == '[') fail_array(number);
    std::string_view next;
    while (lines_.next(next) && trimmed(next).empty()) {
    }
    if (bracket != '{' || trimmed(next).empty() || trimmed(next).front() == '{') return;
    fail_document(number, "one pretty-printed JSON document",
                  "`jq -c .` writes each object on one line");
  }

  void read_line(std::string_view line) {
    const io::Json json = parse(line);
    if (json.kind == io::Json::Kind::array && result_.num_series == 0) fail_array(lines_.number());
    if (json.kind != io::Json::Kind::object) {
      fail_here("{} instead of a series, expected an object with \"start\" and \"target\"",
                io::described(json));
    }
    JsonSeries series;
    series.line = lines_.number();
    series.id = id_of(json);
    series.start = start_of(json);
    series.frequency = frequency_of(json);
    add_target(json, std::move(series));
    for (const auto& [name, value] : json.object) {
      const bool known = name == "start" || name == "target" || name == "item_id" || name == "freq";
      if (!known && ignored_.size() < kMaxIgnored) ignored_.insert(name);
    }
  }

  std::string id_of(const io::Json& json) const {
    const io::Json* const id = json.find("item_id");
    if (id == nullptr || id->kind == io::Json::Kind::null) {
      return fmt::format("line_{}", lines_.number());
    }
    if (id->kind == io::Json::Kind::integer) return std::to_string(id->integer);
    if (id->kind != io::Json::Kind::string) {
      fail_here("the item_id is {}, expected a string", io::described(*id));
    }
    const std::string complaint = name_complaint(id->string);
    if (!complaint.empty()) fail_here("the item_id {}", complaint);
    return id->string;
  }

  Ticks start_of(const io::Json& json) {
    const io::Json* const start = json.find("start");
    if (start == nullptr || start->kind != io::Json::Kind::string) {
      fail_here("\"start\" is {}, expected a time such as \"2024-01-31 12:00:00\"",
                start == nullptr ? "missing" : io::described(*start));
    }
    Ticks time = 0;
    const std::string complaint = clock_.read(trimmed(start->string), time);
    if (!complaint.empty()) fail_here("\"start\": {}", complaint);
    return time;
  }

  Frequency frequency_of(const io::Json& json) const {
    const io::Json* const code = json.find("freq");
    if (code == nullptr || code->kind == io::Json::Kind::null) return {};
    if (code->kind != io::Json::Kind::string) {
      fail_here("\"freq\" is {}, expected a code such as \"1h\"", io::described(*code));
    }
    try {
      return parse_frequency(code->string, "\"freq\"");
    } catch (const Error& error) {  // corrupt_file instead of invalid_argument
      fail_here("{}", error.what());
    }
  }

  void hand_over(JsonSeries series) {
    ++result_.num_series;
    take_(std::move(series), clock_.style());
  }

  // A two-dimensional target becomes one series per row.
  void add_target(const io::Json& json, JsonSeries series) {
    const io::Json* const target = json.find("target");
    if (target == nullptr || target->kind != io::Json::Kind::array) {
      fail_here("\"target\" is {}, expected an array of numbers",
                target == nullptr ? "missing" : io::described(*target));
    }
    const std::vector<io::Json>& rows = target->array;
    if (rows.empty() || rows.front().kind != io::Json::Kind::array) {
      series.values = numbers(rows, "\"target\"");
      hand_over(std::move(series));
      return;
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::string name = fmt::format("\"target\" row {}", row);
      if (rows[row].kind != io::Json::Kind::array ||
          rows[row].array.size() != rows[0].array.size()) {
        fail_here("{} is {}, expected an array of {} as before it", name, io::described(rows[row]),
                  rows[0].array.size());
      }
      JsonSeries variate = series;
      variate.id += fmt::format(".{}", row);
      variate.values = numbers(rows[row].array, name);
      hand_over(std::move(variate));
    }
  }

  // Null and text such as "NaN" are missing values.
  std::vector<float> numbers(const std::vector<io::Json>& items, std::string_view name) const {
    std::vector<float> values(items.size(), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const io::Json& item = items[i];
      if (item.kind == io::Json::Kind::null) continue;
      if (item.kind == io::Json::Kind::string && io::is_missing(trimmed(item.string))) continue;
      if (!item.is_number()) {
        fail_here("{} element {} is {}, expected a number or null", name, i, io::described(item));
      }
      if (!io::to_float(item.real, values[i])) {
        fail_here("{} element {}: {}", name, i,
                  io::complaint(io::CellKind::beyond_float, fmt::format("{}", item.real)));
      }
    }
    return values;
  }

  static constexpr std::size_t kMaxIgnored = 20;  // names in the one warning

  const std::string& file_;
  LineReader lines_;
  const TakeJsonSeries& take_;
  TimeColumn clock_;
  JsonLines result_;
  std::set<std::string> ignored_;
};

}  // namespace

bool looks_like_json(std::string_view head) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = head.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return false;
  if (head[first] == '{') return true;
  const std::size_t second = head.find_first_not_of(kBlank, first + 1);
  return head[first] == '[' && second != std::string_view::npos && head[second] == '{';
}

JsonLines read_json_lines(io::TextInput& input, const TakeJsonSeries& take) {
  return JsonLinesReader(input, take).read();
}

}  // namespace toto::tables
