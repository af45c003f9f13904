#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"

namespace toto::io {
Json json_text(std::string_view text) {
  Json json;
  json.kind = Json::Kind::string;
  json.string = text;
  return json;
}

Json json_number(double number) {
  Json json;
  const bool whole = number == std::floor(number) && std::abs(number) < 1e15;
  json.kind = whole ? Json::Kind::integer : Json::Kind::real;
  json.real = number;
  json.integer = whole ? static_cast<std::int64_t>(number) : 0;
  return json;
}

Json json_toggle(bool on) {
  Json json;
  json.kind = Json::Kind::boolean;
  json.boolean = on;
  return json;
}

Json json_names() {
  Json json;
  json.kind = Json::Kind::array;
  return json;
}

std::string described(const Json& json) {
  switch (json.kind) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return json.boolean ? "true" : "false";
    case Json::Kind::integer:
      return fmt::format("{}", json.integer);
    case Json::Kind::real:  // named as such, because 2.0 prints as 2
      return fmt::format("the real number {}", json.real);
    case Json::Kind::string:
      return quoted(json.string);
    case Json::Kind::array:
      return fmt::format("an array of {}", json.array.size());
    case Json::Kind::object:
      return fmt::format("an object of {}", json.object.size());
  }
  return "nothing";
}

void JsonWriter::new_line() {
  if (layout_ == JsonLayout::compact) return;
  text_ += '\n';
  text_.append(2 * levels_.size(), ' ');
}

// Arrays of numbers stay on one line, everything else starts a new one.
void JsonWriter::start_item(bool on_same_line) {
  OpenBracket& level = levels_.back();
  if (level.has_items) text_ += ',';
  if (!on_same_line) {
    new_line();
  } else if (level.has_items && layout_ == JsonLayout::indented) {
    text_ += ' ';
  }
  level.has_items = true;
}

// Writes the comma and white space before the next value.
void JsonWriter::separate(bool is_number) {
  if (after_key_) {
    after_key_ = false;
  } else if (!levels_.empty()) {
    OpenBracket& level = levels_.back();
    if (level.is_object) fail(ErrorCode::internal, "JSON writer: a value in an object has no key");
    level.inline_items = level.inline_items && is_number;
    start_item(level.inline_items);
  } else if (!text_.empty()) {
    fail(ErrorCode::internal, "JSON writer: a second value after the document's end");
  }
}

void JsonWriter::begin(bool is_object) {
  separate(false);
  text_ += is_object ? '{' : '[';
  levels_.push_back({.is_object = is_object, .has_items = false, .inline_items = !is_object});
}

void JsonWriter::end(bool is_object) {
  if (levels_.empty() || levels_.back().is_object != is_object || after_key_) {
    fail(ErrorCode::internal, "JSON writer: an end that matches no begin");
  }
  const OpenBracket level = levels_.back();
  levels_.pop_back();
  if (level.has_items && !level.inline_items) new_line();
  text_ += is_object ? '}' : ']';
}

JsonWriter& JsonWriter::begin_object() {
  begin(true);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  end(true);
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  begin(false);
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  end(false);
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  if (levels_.empty() || !levels_.back().is_object || after_key_) {
    fail(ErrorCode::internal, "JSON writer: the key {} is not in an object", quoted(name));
  }
  start_item(false);
  text_ += '"';
  append_escaped(text_, name);
  text_ += layout_ == JsonLayout::compact ? "\":" : "\": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate(false);
  text_ += '"';
  append_escaped(text_, text);
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate(false);
  text_ += flag ? "true" : "false";
  return *this;
}

template <typename Number>
JsonWriter& JsonWriter::number(Number number) {
  separate(true);
  char buffer[32];  // the longest double, "-2.2250738585072014e-308", has 24 characters
  const auto result = std::to_chars(std::begin(buffer), std::end(buffer), number);
  text_.append(buffer, result.ptr);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) { return this->number(number); }
JsonWriter& JsonWriter::value(std::uint64_t number) { return this->number(number); }
JsonWriter& JsonWriter::value(float number) {
  return std::isfinite(number) ? this->number(number) : null();
}
JsonWriter& JsonWriter::value(double number) {
  return std::isfinite(number) ? this->number(number) : null();
}

JsonWriter& JsonWriter::value(const Json& tree) {
  switch (tree.kind) {
    case Json::Kind::null:
      return null();
    case Json::Kind::boolean:
      return value(tree.boolean);
    case Json::Kind::integer:
      return value(tree.integer);
    case Json::Kind::real:
      return value(tree.real);
    case Json::Kind::string:
      return value(std::string_view(tree.string));
    case Json::Kind::array:
      begin_array();
      for (const Json& item : tree.array) value(item);
      return end_array();
    case Json::Kind::object:
      begin_object();
      for (const auto& [name, member] : tree.object) key(name).value(member);
      return end_object();
  }
  fail(ErrorCode::internal, "JSON writer: a value of no kind");
}

JsonWriter& JsonWriter::null() {
  separate(true);  // a missing number does not break its array into several lines
  text_ += "null";
  return *this;
}

std::string JsonWriter::take() {
  if (!levels_.empty() || text_.empty()) {
    fail(ErrorCode::internal, "JSON writer: taken before the document's end");
  }
  text_ += '\n';
  return std::exchange(text_, {});
}

void write_text(JsonWriter& json, std::string_view name, const std::optional<std::string>& text) {
  json.key(name);
  text && !text->empty() ? json.value(*text) : json.null();
}

void write_texts(JsonWriter& json, std::string_view name, std::span<const std::string> texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

}  // namespace toto::io
