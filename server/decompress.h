// Compressed request bodies: the one door to zlib and zstd.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace toto::server {

bool is_known_coding(std::string_view name);  // one that decompress() takes, in lower case

// Decodes gzip (one member or several), deflate (zlib or raw) or zstd. `take` is called with
// the size of each piece before it is kept, at least once per 64 KiB of input; the result is empty
// if it returns false. `take` may throw. Error(invalid_argument) for a body that is not so coded.
std::optional<std::string> decompress(const std::string& body, std::string_view encoding,
                                      const std::function<bool(std::size_t bytes)>& take);

}  // namespace toto::server
