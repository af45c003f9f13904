#include "io/json.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace toto::io {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// simdjson selects its implementation on first use and allocates in noexcept functions. Doing it at
// program start keeps a later out-of-memory condition from terminating the process.
[[maybe_unused]] const bool kCodeChosen = !simdjson::get_active_implementation()->name().empty();

// Position of a control character inside a string, otherwise of the start of the unclosed string.
std::size_t string_fault(std::string_view text) {
  std::size_t start = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      in_string = !in_string;
      start = at;
    } else if (in_string && text[at] == '\\') {
      ++at;
    } else if (in_string && static_cast<unsigned char>(text[at]) < 0x20) {
      return at;
    }
  }
  return start;
}

// ---------------------------------------------------------------------------------------- numbers

struct NumberToken {
  std::string_view whole, fraction, exponent;  // digits only, except for the exponent's sign
};

// Empty if the token is not a number by the grammar of RFC 8259.
std::optional<NumberToken> split_number(std::string_view token) {
  std::size_t at = 0;
  const auto take = [&](std::string_view set) {
    const bool taken = at < token.size() && set.find(token[at]) != std::string_view::npos;
    at += taken ? 1 : 0;
    return taken;
  };
  const auto take_digits = [&] {
    const std::size_t first = at;
    at = std::min(token.find_first_not_of("0123456789", at), token.size());
    return token.substr(first, at - first);
  };
  NumberToken parts;
  take("-");
  parts.whole = take_digits();
  if (parts.whole.empty() || (parts.whole.size() > 1 && parts.whole.front() == '0')) return {};
  if (take(".")) {
    parts.fraction = take_digits();
    if (parts.fraction.empty()) return {};
  }
  if (take("eE")) {
    const std::size_t first = at;
    take("+-");
    if (take_digits().empty()) return {};
    parts.exponent = token.substr(first, at - first);
  }
  if (at != token.size()) return {};
  return parts;
}

// For a number that std::from_chars reports out of range: true if too large, false if it rounds to
// zero.
bool is_huge(const NumberToken& parts) {
  const bool negative = parts.exponent.starts_with('-');
  const std::string_view digits = parts.exponent.substr(
      std::min(parts.exponent.find_first_of("0123456789"), parts.exponent.size()));
  std::int64_t exponent = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec ==
      std::errc::result_out_of_range) {
    return !negative;
  }
  if (negative) exponent = -exponent;
  const auto size = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  const std::int64_t position =  // of the first significant digit, relative to the point
      parts.whole != "0"
          ? size(parts.whole.size())
          : -size(std::min(parts.fraction.find_first_not_of('0'), parts.fraction.size()));
  return exponent > -position;
}

// ----------------------------------------------------------------------------------------- parser

// Converts one document; the values are checked while they are converted.
class Parser {
 public:
  Parser(std::string_view text, std::string_view what, std::size_t max_values)
      : text_(text),
        what_(what),
        max_values_(max_values),
        scratch_(std::make_unique_for_overwrite<std::uint8_t[]>(text.size() +
                                                                simdjson::SIMDJSON_PADDING)) {}

  // simdjson reports errors lazily: the end of the document is checked after the conversion.
  Json parse() {
    if (text_.data() == nullptr) fail_for(simdjson::MEMALLOC);
    if (const auto error = parser_.iterate(text_).get(document_)) fail_for(error);
    const char first = *view().substr(view().find_first_not_of(kWhitespace)).data();
    Json root;
    if (first == '{') {
      convert(checked(document_.get_object()), root, 1);
    } else if (first == '[') {
      convert(checked(document_.get_array()), root, 1);
    } else if (first == '"') {
      root.kind = Json::Kind::string;
      root.string = unescaped(checked(document_.get_raw_json_string()));
    } else {  // a scalar is the whole text: anything after it makes the token invalid
      convert_scalar(view(), root);
      return root;
    }
    if (here() != text_.size()) {
      fail_at(here(), "more text after the end of the document");
    }
    return root;
  }

 private:
  std::string_view view() const { return {text_.data(), text_.size()}; }

  template <typename... Args>
  [[noreturn]] void fail_at(std::size_t position, fmt::format_string<Args...> format,
                            Args&&... args) {
    const std::string_view before = view().substr(0, position);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
    fail(ErrorCode::corrupt_file, "{}: line {}, column {}: {}", what_,
         std::count(before.begin(), before.end(), '\n') + 1, before.size() - line_start + 1,
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::size_t position_of(const char* place) const {
    return static_cast<std::size_t>(place - text_.data());
  }

  // simdjson's current position: the invalid token or the one after it.
  std::size_t here() {
    const char* place = nullptr;
    const bool inside = document_.current_location().get(place) == simdjson::SUCCESS;
    return inside ? position_of(place) : text_.size();
  }

  [[noreturn]] void fail_for(simdjson::error_code error) {
    if (error == simdjson::MEMALLOC) {
      fail(ErrorCode::out_of_memory, "{}: no memory to parse {} bytes of JSON", what_,
           text_.size());
    }
    if (error == simdjson::CAPACITY) {
      fail(ErrorCode::corrupt_file, "{}: {} bytes of JSON, expected less than 4 GB", what_,
           text_.size());
    }
    // Checked first, because simdjson reports a consequence: UTF-16 text is full of zero bytes.
    const std::size_t invalid = first_invalid_utf8(view());
    if (invalid < text_.size()) {
      fail_at(invalid, "this byte is not valid UTF-8; save the file as UTF-8");
    }
    switch (error) {
      case simdjson::EMPTY:
        fail_at(0, "there is no value");
      case simdjson::UNESCAPED_CHARS:
        fail_at(string_fault(view()), "a control character in a string, which must be escaped");
      case simdjson::UNCLOSED_STRING:
        fail_at(string_fault(view()), "this string has no closing quote");
      case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
        fail_at(text_.size(),
                "the text does not end with its closing bracket; it is cut off, or more follows");
      default:
        fail_at(here(), "not valid JSON: a comma, colon, quote or bracket is missing or misplaced");
    }
  }

  template <typename T>
  T checked(simdjson::simdjson_result<T> result) {
    T value;
    if (const auto error = std::move(result).get(value)) fail_for(error);
    return value;
  }

  // Uses its own buffer: simdjson does not check whether the allocation of its buffer succeeded.
  std::string_view unescaped(ondemand::raw_json_string string) {
    std::uint8_t* end = scratch_.get();
    std::string_view text;
    if (parser_.unescape(string, end).get(text) != simdjson::SUCCESS) {
      fail_at(position_of(string.raw()) - 1, "this string holds an invalid escape sequence");
    }
    return text;
  }

  void convert(ondemand::value value, Json& json, int depth) {
    const std::string_view token = value.raw_json_token();
    if (++num_values_ > max_values_) {
      fail_at(position_of(token.begin()), "more than {} values; expected a smaller document",
              max_values_);
    }
    switch (*token.data()) {  // readable at the end as well: the text is padded
      case '{':
        return convert(checked(value.get_object()), json, depth + 1);
      case '[':
        return convert(checked(value.get_array()), json, depth + 1);
      case '"':
        json.kind = Json::Kind::string;
        json.string = unescaped(checked(value.get_raw_json_string()));
        return;
      default:  // the enclosing loop skips tokens that are not consumed here
        return convert_scalar(token, json);
    }
  }

  void convert(ondemand::array items, Json& json, int depth) {
    check_depth(depth);
    json.kind = Json::Kind::array;
    for (auto item : items) convert(checked(item), json.array.emplace_back(), depth);
  }

  // Positions of the keys are kept for the error about a duplicate.
  void convert(ondemand::object fields, Json& json, int depth) {
    check_depth(depth);
    json.kind = Json::Kind::object;
    std::vector<std::size_t> positions;  // of the keys
    for (auto result : fields) {
      ondemand::field field = checked(result);
      positions.push_back(position_of(field.key().raw()) - 1);  // back to the opening quote
      auto& [key, member] = json.object.emplace_back();
      key = unescaped(field.key());
      convert(field.value(), member, depth);
    }
    check_unique(json.object, positions);
  }

  void check_depth(int depth) {
    if (depth <= kMaxJsonDepth) return;
    fail_at(here(), "nested deeper than {} levels", kMaxJsonDepth);
  }

  // Sorts instead of hashing, so that no crafted file makes this slow.
  void check_unique(const std::vector<Json::Member>& members,
                    const std::vector<std::size_t>& positions) {
    std::vector<std::pair<std::string_view, std::size_t>> keys;
    keys.reserve(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      keys.emplace_back(members[i].first, positions[i]);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(
        keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == keys.end()) return;
    fail_at(std::next(twice)->second, "duplicate key {}; expected each key once",
            quoted(twice->first));
  }

  // Integers keep 64 bits; -0 and anything beyond int64 become reals.
  void convert_scalar(std::string_view token, Json& json) {
    const std::size_t position = position_of(token.begin());
    token = token.substr(0, token.find_last_not_of(kWhitespace) + 1);
    token.remove_prefix(std::min(token.find_first_not_of(kWhitespace), token.size()));
    if (token == "null") return;
    if (token == "true" || token == "false") {
      json.kind = Json::Kind::boolean;
      json.boolean = token == "true";
      return;
    }
    const std::optional<NumberToken> parts = split_number(token);
    if (!parts) fail_at(position, "{} is not a JSON value", quoted(token));
    const bool is_integer = parts->fraction.empty() && parts->exponent.empty() && token != "-0";
    if (is_integer && std::from_chars(token.data(), token.data() + token.size(), json.integer).ec ==
                          std::errc()) {
      json.kind = Json::Kind::integer;
      json.real = static_cast<double>(json.integer);
      return;
    }
    json.kind = Json::Kind::real;
    std::uint64_t large = 0;
    if (is_integer &&
        std::from_chars(token.data(), token.data() + token.size(), large).ec == std::errc()) {
      json.string = token;
    }
    if (std::from_chars(token.data(), token.data() + token.size(), json.real).ec ==
        std::errc::result_out_of_range) {
      if (is_huge(*parts)) {
        fail_at(position, "the number {} is too large; expected at most 1.8e308", quoted(token));
      }
      json.real = token.front() == '-' ? -0.0 : 0.0;
    }
  }

  simdjson::padded_string text_;  // simdjson reads past the end of its input
  std::string_view what_;
  std::size_t max_values_;
  std::size_t num_values_ = 0;
  std::unique_ptr<std::uint8_t[]> scratch_;  // large enough for the longest possible string
  ondemand::parser parser_;
  ondemand::document document_;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  for (const Member& member : object) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json parse_json(std::string_view text, std::string_view what, std::size_t max_values) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return Parser(text, what, max_values).parse();
}

}  // namespace toto::io
