// What somebody probably meant: the known name that a misspelt one is closest to.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace toto {

// The name at the smallest edit distance (a letter added, left out or changed, two neighbours
// swapped; case does not count), if a third of its letters at most would have to change, else the
// only name that begins with `word`. Of equally near ones the first; nothing if none is near.
std::optional<std::string_view> nearest_name(std::string_view word,
                                             std::span<const std::string_view> names);

// "; did you mean NAME?" to end an error sentence with, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace toto
