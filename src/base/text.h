// Text for people and from people: letters whatever the locale, trimming, quoting, counting.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace toto {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trimmed(std::string_view text);                   // of blanks and tabs
bool equal_ignoring_case(std::string_view a, std::string_view b);  // ASCII
std::string lower_case(std::string_view text);                     // ASCII
std::string upper_case(std::string_view text);                     // ASCII

// "1 step", "2 steps": the plural of `noun` is noun + "s".
std::string counted(std::int64_t count, std::string_view noun);

// "a, b or c".
std::string alternatives(std::span<const std::string_view> words);

// Text from a file as it may stand in an error sentence: in quotes, on one line, without control
// characters, cut short after about 80 bytes.
std::string quoted(std::string_view text);
// Without these two a std::string would find std::quoted instead, wherever <iomanip> is included.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) { return quoted(std::string_view(text)); }

// Names and values come from files and may hold anything. As one line that cannot drive a terminal:
// control characters (C0, DEL, C1), line separators and marks that reverse the direction of writing
// become spaces, bytes that are no UTF-8 become U+FFFD. Spaces at the end are dropped.
std::string one_line(std::string_view text);

// Appends `text` as the inside of a JSON string: quotes, backslashes and control characters are
// escaped, bytes that are not UTF-8 become U+FFFD.
void append_escaped(std::string& out, std::string_view text);

}  // namespace toto
