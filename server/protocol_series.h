// A table as the command line reads it: kind, warnings, and every series on its regular grid. The
// page asks for this, so that there is one reader of CSV files and one sentence for what is wrong
// with one.
//
//   {"csv": "date,close\n2024-01-01,1\n...", "name": "prices.csv", "columns": ["close"]}
#pragma once

#include <string>

#include "plan.h"

namespace toto::server {

std::string series_json(const io::Json& body, const Limits& limits);

}  // namespace toto::server
