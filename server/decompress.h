// Compressed request bodies: the one door to zlib and zstd.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace toto::server {

// Decodes a Content-Encoding: gzip, deflate (zlib or raw), zstd or identity. `take` is called with
// the size of each piece before it is kept, at least once per 64 KiB of input; the result is empty
// if it returns false. `take` may throw. Error(invalid_argument) for anything else.
std::optional<std::string> decompress(const std::string& body, std::string_view encoding,
                                      const std::function<bool(std::size_t bytes)>& take);

}  // namespace toto::server
