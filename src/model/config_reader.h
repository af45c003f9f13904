// Typed look-ups in a config.json with uniform error messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace toto {

// Far above any real checkpoint, and small enough that a product of two fits into 64 bits.
inline constexpr int kMaxDim = 1 << 16;
inline constexpr int kMaxLayers = 4096;
inline constexpr std::int64_t kMaxParameters = 20'000'000'000;

// Keeps references to its arguments. Errors are Error(corrupt_file) that begin with `what`.
class ConfigReader {
 public:
  ConfigReader(const io::Json& root, std::string_view what) : root_(root), what_(what) {}

  const io::Json& required(const char* key) const;
  int integer(const char* key, int low, int high) const;  // required, in [low, high]
  bool boolean(const char* key, bool otherwise) const;
  double real(const char* key, double otherwise, double low, double high) const;
  const std::string& text(const io::Json& value, const char* key) const;
  std::string_view what() const { return what_; }

  // Adds a warning for each key that is not in `known`; beyond 20 they are only counted.
  void warn_of_unknown(std::span<const std::string_view> known,
                       std::vector<std::string>& warnings) const;

 private:
  const io::Json& root_;
  std::string_view what_;
};

}  // namespace toto
