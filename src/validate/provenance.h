// When and where a report was made: without it two of them cannot be compared.
#pragma once

#include <string>

#include "io/json.h"

namespace toto::validate {

struct Provenance {
  std::string date;       // UTC, "2026-01-31T12:00:00Z"
  std::string host, cpu;  // as the system has them
};
Provenance provenance();  // here and now

std::string text_of(const Provenance& made);  // "2026-01-31T12:00:00Z on HOST, CPU"
void write_provenance(io::JsonWriter& json, const Provenance& made);  // "date", "host", "cpu"

}  // namespace toto::validate
