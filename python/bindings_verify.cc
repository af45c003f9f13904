#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.h"
#include "engine_handle.h"
#include "validate/verification.h"

namespace toto::python {
namespace {

// The report as JSON. Loads separate engines, so other calls are not delayed.
std::string verify(const std::string& model, std::vector<std::string> goldens, bool golden_only,
                   const std::vector<std::string>& modes, const std::string& dtype,
                   const std::string& isa, int threads, std::uint64_t seed) {
  validate::VerifyOptions options;
  options.model = model;
  options.goldens = std::move(goldens);
  options.golden_only = golden_only;
  options.engine.dtype = parse_dtype(dtype);
  options.engine.isa = parse_isa(isa);
  options.engine.threads = threads;
  options.seed = seed;
  options.modes = validate::all_modes(options.engine.dtype);
  if (!modes.empty()) options.modes.clear();
  for (const std::string& mode : modes) options.modes.push_back(parse_mode(mode));
  Interrupts interrupts;
  options.cancelled = [&interrupts] { return interrupts.pending(); };
  try {
    const Unlocked unlocked;
    return validate::json_text(validate::verify(options));
  } catch (const Error&) {
    interrupts.rethrow();
    throw;
  }
}

}  // namespace

void bind_verify(nb::module_& module) {
  module.def("verify", &verify, nb::arg("model"), nb::kw_only(), nb::arg("goldens"),
             nb::arg("golden_only"), nb::arg("modes"), nb::arg("dtype"), nb::arg("isa"),
             nb::arg("threads"), nb::arg("seed"));
}

}  // namespace toto::python
