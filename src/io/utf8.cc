#include "io/utf8.h"

#include <algorithm>

namespace toto::io {
namespace {

// `sequence` is one character.
bool may_drive_a_terminal(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080 to U+009F
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||  // U+2028 to U+202E
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);    // U+2066 to U+2069
}

}  // namespace

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

}  // namespace toto::io
