// Text helpers: locale-independent letters, trimming, quoting, UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace toto {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trimmed(std::string_view text);                   // without outer blanks and tabs
bool equal_ignoring_case(std::string_view a, std::string_view b);  // ASCII
std::string lower_case(std::string_view text);                     // ASCII
std::string upper_case(std::string_view text);                     // ASCII

std::string alternatives(std::span<const std::string_view> words);  // "a, b or c"
std::string counted(std::int64_t count, std::string_view noun);     // "1 step", "2 steps"

// Text from a file, safe for an error message: in quotes, on one line, control characters escaped,
// cut after about 80 bytes.
std::string quoted(std::string_view text);
// These two keep a std::string argument from selecting std::quoted where <iomanip> is included.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) { return quoted(std::string_view(text)); }

// Untrusted text as one line that is safe to print on a terminal: control characters (C0, DEL, C1),
// line separators and bidirectional marks become spaces, invalid UTF-8 becomes U+FFFD. Trailing
// spaces are dropped.
std::string one_line(std::string_view text);

// Appends `text` as the inside of a JSON string: quotes, backslashes and control characters are
// escaped, bytes that are not UTF-8 become U+FFFD.
void append_escaped(std::string& out, std::string_view text);

// Well-formed UTF-8 as defined by RFC 3629.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the character that begins at `text[at]`; 0 if no valid character begins there.
std::size_t utf8_length(std::string_view text, std::size_t at);

// Position of the first invalid byte; text.size() if all of it is valid.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace toto
