// Well-formed UTF-8, as RFC 3629 defines it, and text that is safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace toto {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Length of the sequence that begins at `text[at]`, or 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t at);

// Position of the first byte that belongs to no sequence; text.size() if there is none.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace toto
