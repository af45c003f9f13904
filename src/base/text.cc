#include "base/text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace toto {
namespace {

constexpr std::size_t kMaxShown = 80;  // bytes of a text in an error sentence

// Whether one UTF-8 character can move the cursor, break the line or reverse the direction.
bool may_drive_a_terminal(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080 to U+009F
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||  // U+2028 to U+202E
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);    // U+2066 to U+2069
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

// Appends `text` without the quotes, with what JSON cannot hold escaped. So are DEL and the C1
// control characters, which JSON can hold: a name from a file must not steer the terminal it is
// printed on.
void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const bool is_c1 = length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
    if (length == 0) {
      out += kReplacementCharacter;
    } else if (byte(0) < 0x20 || byte(0) == 0x7F || is_c1) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte(length - 1));
    } else {
      if (byte(0) == '"' || byte(0) == '\\') out += '\\';
      out += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
}

std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string quoted(std::string_view text) {
  std::size_t shown = std::min(text.size(), kMaxShown);
  // Do not cut inside a character, which has at most three continuation bytes.
  for (int i = 0; i < 3 && shown < text.size() && (text[shown] & 0xC0) == 0x80; ++i) --shown;
  std::string out = "\"";
  append_escaped(out, text.substr(0, shown));
  out += '"';
  if (shown < text.size()) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string_view sequence = text.substr(at, length);
    if (length == 0) {
      line += kReplacementCharacter;
    } else if (may_drive_a_terminal(sequence)) {
      line += ' ';
    } else {
      line += sequence;
    }
    at += std::max<std::size_t>(length, 1);
  }
  line.erase(line.find_last_not_of(' ') + 1);  // npos + 1 is 0
  return line;
}

// Overlong forms, surrogates and code points past U+10FFFF are refused by the bounds on the second
// byte.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto is_tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return is_tail(1) ? 2 : 0;
  if (lead < 0xF0) {
    if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
    return is_tail(1) && is_tail(2) ? 3 : 0;
  }
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
  return is_tail(1) && is_tail(2) && is_tail(3) ? 4 : 0;
}

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

}  // namespace toto
