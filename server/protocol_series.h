// A CSV file read as the command line reads it: format, warnings, and every series on its regular
// grid. For the page, so that there is only one CSV reader and one set of error messages.
//
//   {"csv": "date,close\n2024-01-01,1\n...", "name": "prices.csv", "columns": ["close"]}
#pragma once

#include <string>

#include "request_fields.h"

namespace toto::server {

std::string series_json(const io::Json& body, const RequestLimits& limits);

}  // namespace toto::server
