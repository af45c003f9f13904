// The parts of totocpp._native, one file each. totocpp/_arrays.py converts inputs to float32 arrays
// of the right shapes; the engine checks everything else.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared_forecast.h"
#include "toto/toto.h"

namespace toto::python {

namespace nb = nanobind;

void bind_engine(nb::module_& module);
void bind_session(nb::module_& module);
void bind_backtest(nb::module_& module);
void bind_verify(nb::module_& module);
void bind_settings(nb::module_& module);

// The keyword of a setting: `from` is one of Python's own.
std::string_view python_name(std::string_view name);
// Options by the names of settings/forecast_settings.cc, each checked by its row.
ForecastOptions forecast_options(const nb::dict& options);

using Values = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using GroupIds = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// An `Input` of totocpp/_arrays.py, by the names of its fields.
Series series_of(nb::handle input);

// The kind of a plain input, an array or list of numbers: `one` is [time]; `many` is [series, time]
// or a list of [time]. `none` is anything else, invalid inputs included: totocpp/_arrays.py reads
// those.
enum class Plain { none, one, many };
// Reads into `series` and reuses its memory.
Plain plain_series(nb::handle given, std::vector<Series>& series);

// The options of a forecast, checked and translated once for many calls.
struct ForecastCall {
  ForecastOptions options;
  nb::object levels;       // a tuple
  nb::object answer_type;  // class of the results: totocpp.SeriesForecast
  bool context_given = false;
};
// What the command says about the series of an answer. Needs no interpreter.
std::vector<std::string> remarks_on(std::span<const Series> series, const ForecastCall& request,
                                    const ModelFacts& facts);
void warn_of(std::span<const std::string> sentences);  // as Python warnings
void bind_request(nb::module_& module);

// A forecast as Python sees it. Arrays are created on first access and own a reference to the
// forecast's memory, not to this object, which holds them: that cycle would never be collected.
struct ForecastObject {
  SharedForecast forecast;
  nb::object levels;
  bool has_variates = false;  // arrays are [V, H], not [H]
  nb::object mean = {}, median = {}, point = {}, level_values = {}, samples = {};  // once accessed
};
// An empty result. Created before computing: afterwards the interpreter is no longer in the CPU
// caches.
struct NewForecastObject {
  nb::object object;
  Forecast* forecast;  // owned by the object
};
NewForecastObject new_forecast_object(const ForecastCall& request, bool has_variates);
void bind_forecast(nb::module_& module);

}  // namespace toto::python
