// The JSON of Chronos endpoints: {"inputs": [{"target", ...}], "parameters": {...}}.
#pragma once

#include "request_fields.h"

namespace toto::server {

PreparedRequest prepare_chronos(const io::Json& body, const RequestLimits& limits);

}  // namespace toto::server
