// The JSON of Chronos endpoints: {"inputs": [{"target", ...}], "parameters": {...}}.
#pragma once

#include "plan.h"

namespace toto::server {

Plan plan_chronos(const io::Json& body, const Limits& limits);

}  // namespace toto::server
