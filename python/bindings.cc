// totocpp._native: the engine for Python. Thin: defaults, shapes and messages are in totocpp/*.py.
#include "bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "base/memory.h"
#include "base/threads.h"
#include "running_calls.h"

namespace toto::python {
namespace {

PyObject* exception_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::corrupt_file:
    case ErrorCode::unsupported:
      return PyExc_ValueError;
    case ErrorCode::not_found:
      return PyExc_FileNotFoundError;
    case ErrorCode::out_of_memory:
      return PyExc_MemoryError;
    case ErrorCode::cancelled:
      return PyExc_KeyboardInterrupt;
    case ErrorCode::overloaded:
    case ErrorCode::internal:
      break;
  }
  return PyExc_RuntimeError;
}

void translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    PyErr_SetString(exception_for(error.code()), error.what());
  } catch (const nb::cast_error&) {
    // totocpp/*.py checks types and names the argument; this is for what it misses.
    PyErr_SetString(PyExc_TypeError,
                    "an argument has the wrong type, expected numbers, text and arrays as in the "
                    "signature");
  }
}

}  // namespace

NB_MODULE(_native, module) {
  nb::register_exception_translator(translate);
  module.def("version", [] { return std::string(version()); });
  module.def("usable_cores", &usable_cores, "Physical cores this process may use.");
  module.def(
      "require_memory",
      [](std::uint64_t bytes) {
        require_memory(bytes, "the series", "give fewer points: the latest ones count");
      },
      nb::arg("bytes"), "MemoryError if this much memory is not available.");
  module.def("best_isa", [] { return std::string(name_of(best_isa())); });
  // Canonical names; ValueError for unknown ones.
  module.def(
      "mode_name", [](const std::string& name) { return std::string(name_of(parse_mode(name))); },
      nb::arg("name"));
  module.def(
      "dtype_name", [](const std::string& name) { return std::string(name_of(parse_dtype(name))); },
      nb::arg("name"));
  module.def(
      "isa_name", [](const std::string& name) { return std::string(name_of(parse_isa(name))); },
      nb::arg("name"));
  module.def(
      "isa_available", [](const std::string& name) { return isa_available(parse_isa(name)); },
      nb::arg("name"));
  bind_forecast(module);
  bind_request(module);
  bind_engine(module);
  bind_session(module);
  bind_backtest(module);
  bind_verify(module);
  bind_settings(module);
  bind_exit(module);
}

}  // namespace toto::python
