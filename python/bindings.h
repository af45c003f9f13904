// The parts of totocpp._native, one file each. What Python hands over has been made into float32
// arrays of the right shapes by totocpp/_arrays.py; what an engine can refuse, it refuses itself.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "toto/toto.h"

namespace toto::python {

namespace nb = nanobind;

void bind_engine(nb::module_& module);
void bind_session(nb::module_& module);
void bind_backtest(nb::module_& module);
void bind_verify(nb::module_& module);

using Values = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using GroupIds = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// (id, values, mask or None, group ids or None, number of exogenous variates, known future or None)
Series series_of(nb::handle tuple);

// What a caller asked for, checked and translated once, however many calls it is used for: made of
// (horizon, quantiles, samples, context, decode, missing, point, seed, independent_streams,
// keep_samples)
ForecastOptions options_of(nb::handle tuple);
void bind_options(nb::module_& module);

// (id, context_length, num_samples, mean, median, point [V, H], quantiles [Q, V, H], samples [V, S,
// H] or None): arrays that share the forecast's own memory.
nb::tuple answer_of(Forecast forecast);

}  // namespace toto::python
