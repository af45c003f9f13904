// Reads JSON (the only user of simdjson) and writes it. Input is untrusted: every limit is checked,
// duplicate keys are refused, errors name line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toto::io {

// A parsed value. Integers and reals are distinguished by their spelling; objects keep their order.
class Json {
 public:
  enum class Kind { null, boolean, integer, real, string, array, object };
  struct Member;

  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;  // integers beyond int64 have kind real
  double real = 0;           // also set for integers
  std::string string;        // of kind real: the digits of an integer from 2^63 to 2^64 - 1
  std::vector<Json> array;
  std::vector<Member> object;

  bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
  const Json* find(std::string_view key) const;  // nullptr if absent or not an object
};

// Members named as in std::pair, which cannot hold an incomplete type.
struct Json::Member {
  std::string first;
  Json second;
};

inline constexpr int kMaxJsonDepth = 64;
// A value takes about 100 bytes in memory but as little as one byte of text, so the number of
// values bounds the memory, not the length of the text: 4 million values are 400 MB.
inline constexpr std::size_t kMaxJsonValues = 4'000'000;

// `what` names the text in errors ("config.json"). Refuses duplicate keys, depth over 64, more
// values than `max_values`, invalid UTF-8, numbers beyond double, trailing bytes:
// Error(corrupt_file) with line and column. A UTF-8 BOM is accepted.
Json parse_json(std::string_view text, std::string_view what,
                std::size_t max_values = kMaxJsonValues);

// Values to write. A whole number below 10^15 has kind integer.
Json json_text(std::string_view text);
Json json_number(double number);
Json json_toggle(bool on);
Json json_names();  // an empty array

// A value for an error message: "an array of 3", "-1", ...
std::string described(const Json& value);

enum class JsonLayout {
  indented,  // two spaces per level; arrays of numbers stay on one line
  compact,   // one line, no spaces
};

// Writes JSON into a string. Floats use the shortest text that reads back as the same value; NaN
// and infinities become null. The output is always valid: bytes that are not UTF-8 become U+FFFD.
// Calls that do not form a document (a value without its key, a missing end) are Error(internal).
class JsonWriter {
 public:
  explicit JsonWriter(JsonLayout layout = JsonLayout::indented) : layout_(layout) {}
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(unsigned number) { return value(static_cast<std::uint64_t>(number)); }
  JsonWriter& value(float number);
  JsonWriter& value(double number);
  JsonWriter& value(const Json& tree);
  JsonWriter& null();
  template <typename T>
  JsonWriter& field(std::string_view name, const T& item) {
    return key(name).value(item);
  }
  std::string take();  // the document, ending in a newline; the writer is empty again
  // Removes and returns the text so far; the document continues. For documents larger than memory.
  std::string drain() { return std::exchange(text_, {}); }

 private:
  struct OpenBracket {
    bool is_object;
    bool has_items;
    bool inline_items;  // an array that has held only numbers so far
  };
  void begin(bool is_object);
  void end(bool is_object);
  void separate(bool is_number);
  void start_item(bool on_same_line);
  void new_line();
  template <typename Number>
  JsonWriter& number(Number number);

  JsonLayout layout_;
  std::string text_;
  std::vector<OpenBracket> levels_;
  bool after_key_ = false;
};

// A field that is null without a text: none, or an empty one.
void write_text(JsonWriter& json, std::string_view name, const std::optional<std::string>& text);
void write_texts(JsonWriter& json, std::string_view name, std::span<const std::string> texts);

}  // namespace toto::io
