#include "model/config_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace toto {

using io::Json;

const Json& ConfigReader::required(const char* key) const {
  const Json* value = root_.find(key);
  if (value == nullptr) {
    fail(ErrorCode::corrupt_file, "{}: \"{}\" is missing, expected the config.json of a Toto model",
         what_, key);
  }
  return *value;
}

int ConfigReader::integer(const char* key, int low, int high) const {
  const Json& value = required(key);
  if (value.kind != Json::Kind::integer || value.integer < low || value.integer > high) {
    fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected an integer from {} to {}", what_, key,
         io::described(value), low, high);
  }
  return static_cast<int>(value.integer);
}

bool ConfigReader::boolean(const char* key, bool otherwise) const {
  const Json* value = root_.find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != Json::Kind::boolean) {
    fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected true or false", what_, key,
         io::described(*value));
  }
  return value->boolean;
}

double ConfigReader::real(const char* key, double otherwise, double low, double high) const {
  const Json* value = root_.find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number() || !(value->real >= low && value->real <= high)) {
    fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected a number from {} to {}", what_, key,
         io::described(*value), low, high);
  }
  return value->real;
}

const std::string& ConfigReader::text(const Json& value, const char* key) const {
  if (value.kind != Json::Kind::string) {
    fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected text", what_, key,
         io::described(value));
  }
  return value.string;
}

void ConfigReader::warn_of_unknown(std::span<const std::string_view> known,
                                   std::vector<std::string>& warnings) const {
  constexpr std::size_t kMostNamed = 20;
  std::size_t unknown = 0;
  for (const Json::Member& member : root_.object) {
    if (std::ranges::find(known, member.first) != known.end()) continue;
    if (++unknown <= kMostNamed) {
      warnings.push_back(fmt::format("{}: unknown key {} is ignored", what_, quoted(member.first)));
    }
  }
  if (unknown > kMostNamed) {
    warnings.push_back(
        fmt::format("{}: {} more unknown keys are ignored", what_, unknown - kMostNamed));
  }
}

}  // namespace toto
