// The numbers of a trace by name, for tests that compare or change them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "toto/toto.h"

namespace toto {

inline const std::vector<double>& values_of(const Trace& trace, std::string_view name) {
  const TraceArray* array = trace.find(name);
  if (array == nullptr) throw std::runtime_error("no array " + std::string(name));
  return array->values;
}

inline std::vector<double> values_of(Trace&& trace, std::string_view name) {
  return values_of(std::as_const(trace), name);
}

inline std::vector<double>& values_of(Trace& trace, std::string_view name) {
  return const_cast<std::vector<double>&>(values_of(std::as_const(trace), name));
}

}  // namespace toto
