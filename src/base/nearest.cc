#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"

namespace toto {
namespace {

// Longer words were not typed by hand; the limit also bounds the cost of a comparison.
constexpr std::size_t kLongestWord = 64;

bool same(char a, char b) { return lower(a) == lower(b); }

// Optimal string alignment; three rows of its table are enough.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_before(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_before, before);
    std::swap(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = before[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({changed, before[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], two_before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

bool begins_with(std::string_view name, std::string_view word) {
  return word.size() < name.size() && std::equal(word.begin(), word.end(), name.begin(), same);
}

// Without the dashes in front of an option.
std::size_t num_letters(std::string_view name) {
  return name.size() - std::min(name.find_first_not_of('-'), name.size());
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view word,
                                             std::span<const std::string_view> names) {
  if (num_letters(word) == 0 || word.size() > kLongestWord) return {};
  std::optional<std::string_view> nearest;
  std::size_t least = kLongestWord;
  for (const std::string_view name : names) {
    if (name.size() > 2 * kLongestWord) continue;
    const std::size_t distance = edit_distance(word, name);
    if (distance < least && distance <= std::max<std::size_t>(num_letters(name) / 3, 1)) {
      nearest = name;
      least = distance;
    }
  }
  if (nearest) return nearest;
  const auto is_longer = [&](std::string_view name) { return begins_with(name, word); };
  const auto first = std::find_if(names.begin(), names.end(), is_longer);
  if (first == names.end() || std::any_of(first + 1, names.end(), is_longer)) return {};
  return *first;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const std::optional<std::string_view> nearest = nearest_name(word, names);
  return nearest ? "; did you mean " + std::string(*nearest) + "?" : std::string();
}

}  // namespace toto
