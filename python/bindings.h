// The parts of totocpp._native, one file each. What Python hands over has been made into float32
// arrays of the right shapes by totocpp/_arrays.py; what an engine can refuse, it refuses itself.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
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

// Arrays and lists of float32 and float64 numbers: [time] is one, [series, time] or a list of
// [time] are many. `none` for anything else, also if it is wrong: totocpp/_arrays.py says why.
enum class Plain { none, one, many };
// Into `series`, whose memory is used again.
Plain plain_series(nb::handle given, std::vector<Series>& series);

// What a caller asked for, checked and translated once, however many calls it is used for.
struct ForecastCall {
  ForecastOptions options;
  nb::object levels;       // of the quantiles, a tuple
  nb::object answer_type;  // what becomes of a forecast: totocpp.SeriesForecast
};
void bind_request(nb::module_& module);

// A forecast as Python sees it. Arrays are made when first asked for and share its memory, not the
// answer itself, which keeps them: that would be a circle nobody collects.
struct ForecastObject {
  SharedForecast forecast;
  nb::object levels;
  bool has_variates = false;  // arrays are [V, H], not [H]
  nb::object mean = {}, median = {}, point = {}, level_values = {}, samples = {};  // if asked for
};
// One to be filled: made before computing, after which the caches hold nothing of the interpreter.
struct NewForecastObject {
  nb::object object;
  Forecast* forecast;  // the object's
};
NewForecastObject new_forecast_object(const ForecastCall& request, bool has_variates);
void bind_forecast(nb::module_& module);

}  // namespace toto::python
