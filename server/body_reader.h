// Reads request bodies: decompresses them and runs the handler's parser on a thread for their size.
#pragma once

#include <cstddef>
#include <functional>

#include "http_call.h"

namespace toto::server {

// Parses a body and acts on it. Returns 0, or bytes_too_large_here (prepared_request.h): then it
// has only read, and runs again on a thread for larger requests.
using ParseBody = std::function<std::size_t()>;

// Runs `parse` with the body decompressed, here or on a worker; answers with any error it throws.
void read_body(const HttpCallPtr& call, const ParseBody& parse);

// Counts freed memory and returns it to the system from time to time: that takes milliseconds.
void count_freed(ServiceState& service, std::size_t bytes);

}  // namespace toto::server
