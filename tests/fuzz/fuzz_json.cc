// Any text is either refused with Error(corrupt_file) or survives being written and read again.
#include <bit>
#include <cstdint>

#include "io/json.h"
#include "require.h"
#include "toto/toto.h"

using toto::io::Json;
using toto::io::JsonLayout;
using toto::io::JsonWriter;
using toto::io::parse_json;

namespace {

bool same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {  // 1.0 is written as 1, and read as an integer
    return std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real) &&
           (a.kind != b.kind || a.integer == b.integer);
  }
  if (a.kind != b.kind || a.boolean != b.boolean || a.string != b.string ||
      a.array.size() != b.array.size() || a.object.size() != b.object.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.array.size(); ++i) {
    if (!same(a.array[i], b.array[i])) return false;
  }
  for (std::size_t i = 0; i < a.object.size(); ++i) {
    if (a.object[i].first != b.object[i].first) return false;
    if (!same(a.object[i].second, b.object[i].second)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Json json;
  try {
    json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const toto::Error& error) {
    toto::require(error.code() == toto::ErrorCode::corrupt_file);
    return 0;
  }
  for (const JsonLayout layout : {JsonLayout::indented, JsonLayout::compact}) {
    toto::require(same(json, parse_json(JsonWriter(layout).value(json).take(), "output")));
  }
  return 0;
}
