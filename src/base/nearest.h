// Suggestions for misspelt names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace toto {

// The name at the smallest edit distance (a letter added, left out or changed, two neighbours
// swapped; case-insensitive) if at most a third of its letters differ, otherwise the only name that
// begins with `word`. The first of equally near names; empty if none is near.
std::optional<std::string_view> nearest_name(std::string_view word,
                                             std::span<const std::string_view> names);

// "; did you mean NAME?" to append to an error message, or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace toto
