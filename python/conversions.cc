#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "bindings.h"

namespace toto::python {
namespace {

using Array = nb::ndarray<nb::numpy, float>;

template <typename T, typename Source>
std::vector<T> copied(const Source& array) {
  return std::vector<T>(array.data(), array.data() + array.size());
}

template <typename Source, typename T>
void copy_if_given(nb::handle object, std::vector<T>& out) {
  if (!object.is_none()) out = copied<T>(nb::cast<Source>(object));
}

// An array that shares the forecast's memory; without the variate axis unless has_variates.
template <std::size_t N>
Array array_of(const ForecastObject& answer, std::vector<float>& values,
               std::array<std::size_t, N> shape, std::size_t variate_axis) {
  const nb::capsule owner(new SharedForecast(answer.forecast),
                          [](void* p) noexcept { delete static_cast<SharedForecast*>(p); });
  if (answer.has_variates) return Array(values.data(), N, shape.data(), owner);
  std::copy(shape.begin() + variate_axis + 1, shape.end(), shape.begin() + variate_axis);
  return Array(values.data(), N - 1, shape.data(), owner);
}

template <std::vector<float> Forecast::* kMember>
Array per_step(const ForecastObject& answer) {
  Forecast& forecast = *answer.forecast;
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  return array_of<2>(answer, forecast.*kMember, {variates, horizon}, 0);
}

Array quantiles(const ForecastObject& answer) {
  Forecast& forecast = *answer.forecast;
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  // An object that is not filled yet; only gc.get_objects() can reach it.
  if (forecast.quantiles.empty())
    return array_of<3>(answer, forecast.quantiles, {0, variates, horizon}, 1);
  const std::size_t levels = forecast.quantiles.size() / (variates * horizon);
  return array_of<3>(answer, forecast.quantiles, {levels, variates, horizon}, 1);
}

std::optional<Array> samples(const ForecastObject& answer) {
  Forecast& forecast = *answer.forecast;
  if (forecast.samples.empty()) return {};
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  const std::size_t paths = forecast.samples.size() / (variates * horizon);
  return array_of<3>(answer, forecast.samples, {variates, paths, horizon}, 0);
}

// A number, or a tuple of one per variate.
nb::object scale_of(const ForecastObject& answer) {
  const std::vector<double>& scale = answer.forecast->scale;
  if (!answer.has_variates) return nb::float_(scale.empty() ? 1.0 : scale.front());
  nb::list factors;
  for (const double factor : scale) factors.append(factor);
  return nb::tuple(factors);
}

// The array of kMake, created once.
template <nb::object ForecastObject::* kKept, auto kMake>
nb::object once(ForecastObject& answer) {
  nb::object& kept = answer.*kKept;
  if (!kept.is_valid()) kept = nb::cast(kMake(answer), nb::rv_policy::reference);
  return kept;
}

// Setter, for `forecast.mean += 1`.
template <nb::object ForecastObject::* kKept>
void replace(ForecastObject& answer, nb::object array) {
  answer.*kKept = std::move(array);
}

// An unpickled or copied forecast, from its properties by name.
ForecastObject restored(const nb::dict& fields) {
  using Given = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
  const auto mean = nb::cast<Given>(fields["mean"]);
  ForecastObject answer{{}, fields["levels"], mean.ndim() == 2};
  Forecast& forecast = *answer.forecast;
  forecast.id = nb::cast<std::string>(fields["id"]);
  forecast.context_length = nb::cast<int>(fields["context_length"]);
  forecast.num_samples = nb::cast<int>(fields["num_samples"]);
  forecast.num_paths = nb::cast<int>(fields["num_paths"]);
  forecast.exact_steps = nb::cast<int>(fields["exact_steps"]);
  if (answer.has_variates) {
    forecast.scale = nb::cast<std::vector<double>>(fields["scale"]);
  } else {
    forecast.scale = {nb::cast<double>(fields["scale"])};
  }
  forecast.num_variates = answer.has_variates ? static_cast<int>(mean.shape(0)) : 1;
  forecast.horizon = static_cast<int>(mean.shape(mean.ndim() - 1));
  forecast.mean = copied<float>(mean);
  copy_if_given<Given>(fields["median"], forecast.median);
  copy_if_given<Given>(fields["point"], forecast.point);
  copy_if_given<Given>(fields["level_values"], forecast.quantiles);
  copy_if_given<Given>(fields["samples"], forecast.samples);
  return answer;
}

}  // namespace

Series series_of(nb::handle input) {
  const auto values = nb::cast<Values>(input.attr("values"), false);
  Series series{.id = nb::cast<std::string>(input.attr("id")),
                .num_variates = static_cast<int>(values.shape(0)),
                .values = copied<float>(values),
                .num_exogenous = nb::cast<int>(input.attr("num_exogenous"))};
  copy_if_given<Mask>(input.attr("mask"), series.mask);
  copy_if_given<GroupIds>(input.attr("group_ids"), series.group_ids);
  copy_if_given<Values>(input.attr("future"), series.future_exogenous);
  return series;
}

void bind_request(nb::module_& module) {
  nb::class_<ForecastCall>(module, "Request")
      .def(
          "__init__",
          [](ForecastCall* self, nb::object answer_type, const nb::dict& options,
             bool keep_samples) {
            ForecastCall call{forecast_options(options), options["quantiles"],
                              std::move(answer_type)};
            call.options.keep_samples = keep_samples;
            new (self) ForecastCall(std::move(call));
          },
          nb::arg("answer_type"), nb::arg("options"), nb::kw_only(), nb::arg("keep_samples"),
          nb::sig("def __init__(self, answer_type: type[Forecast], "
                  "options: dict[str, typing.Any], *, keep_samples: bool) -> None"));
}

NewForecastObject new_forecast_object(const ForecastCall& request, bool has_variates) {
  nb::object object = nb::inst_alloc(request.answer_type);
  auto* const answer =
      new (nb::inst_ptr<ForecastObject>(object)) ForecastObject{{}, request.levels, has_variates};
  nb::inst_mark_ready(object);
  return {std::move(object), &*answer->forecast};
}

void bind_forecast(nb::module_& module) {
  nb::class_<ForecastObject>(module, "Forecast")
      .def_prop_rw(
          "id", [](const ForecastObject& self) { return self.forecast->id; },
          [](ForecastObject& self, std::string name) { self.forecast->id = std::move(name); })
      .def_prop_ro("context_length",
                   [](const ForecastObject& self) { return self.forecast->context_length; })
      .def_prop_ro("num_samples",
                   [](const ForecastObject& self) { return self.forecast->num_samples; })
      .def_prop_ro("num_paths", [](const ForecastObject& self) { return self.forecast->num_paths; })
      .def_prop_ro("exact_steps",
                   [](const ForecastObject& self) { return self.forecast->exact_steps; })
      .def_prop_ro("scale", &scale_of,
                   nb::for_getter(nb::sig("def scale(self) -> float | tuple[float, ...]")))
      .def_prop_rw("mean", &once<&ForecastObject::mean, &per_step<&Forecast::mean>>,
                   &replace<&ForecastObject::mean>,
                   nb::for_getter(nb::sig("def mean(self) -> numpy.typing.NDArray[numpy.float32]")),
                   nb::for_setter(nb::sig(
                       "def mean(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_rw(
          "median", &once<&ForecastObject::median, &per_step<&Forecast::median>>,
          &replace<&ForecastObject::median>,
          nb::for_getter(nb::sig("def median(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(
              nb::sig("def median(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_rw(
          "point", &once<&ForecastObject::point, &per_step<&Forecast::point>>,
          &replace<&ForecastObject::point>,
          nb::for_getter(nb::sig("def point(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(
              nb::sig("def point(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_ro(
          "levels", [](const ForecastObject& self) { return self.levels; },
          nb::for_getter(nb::sig("def levels(self) -> tuple[float, ...]")))
      .def_prop_rw(
          "level_values", &once<&ForecastObject::level_values, &quantiles>,
          &replace<&ForecastObject::level_values>,
          nb::for_getter(nb::sig("def level_values(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(nb::sig(
              "def level_values(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_rw(
          "samples", &once<&ForecastObject::samples, &samples>, &replace<&ForecastObject::samples>,
          nb::for_getter(
              nb::sig("def samples(self) -> numpy.typing.NDArray[numpy.float32] | None")),
          nb::for_setter(nb::sig(
              "def samples(self, value: numpy.typing.NDArray[numpy.float32] | None, /) -> None")))
      .def(
          "__setstate__",
          [](ForecastObject& self, const nb::dict& fields) {
            new (&self) ForecastObject(restored(fields));
          },
          nb::sig("def __setstate__(self, fields: dict[str, typing.Any], /) -> None"));
}

}  // namespace toto::python
