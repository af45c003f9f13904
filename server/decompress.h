// Compressed request bodies: the one door to zlib and zstd.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace toto::server {

// What is behind a Content-Encoding: gzip, deflate (zlib or raw), zstd, or identity. At most
// `max_bytes` come out, and memory is taken as they do: a bomb ends as Error(out_of_memory).
// Anything else wrong is Error(invalid_argument).
// So does a body of which `take`, asked before each piece is kept, does not want more; it is asked
// after little work, whether that made anything or not, and may throw.
std::string decompress(const std::string& body, std::string_view encoding, std::size_t max_bytes,
                       const std::function<bool(std::size_t bytes)>& take = {});

}  // namespace toto::server
