#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
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

// (horizon, levels, samples, context, decode, missing, point, seed, independent_streams,
// keep_samples)
ForecastOptions options_of(const nb::tuple& tuple) {
  ForecastOptions options;
  options.horizon = nb::cast<int>(tuple[0]);
  options.quantiles = nb::cast<std::vector<double>>(tuple[1]);
  options.num_samples = nb::cast<int>(tuple[2]);
  options.max_context = nb::cast<int>(tuple[3]);
  options.decode = parse_decode(nb::cast<std::string>(tuple[4]));
  options.missing = parse_missing(nb::cast<std::string>(tuple[5]));
  options.point = parse_point(nb::cast<std::string>(tuple[6]));
  options.seed = nb::cast<std::uint64_t>(tuple[7]);
  options.independent_streams = nb::cast<bool>(tuple[8]);
  options.keep_samples = nb::cast<bool>(tuple[9]);
  return options;
}

// The axis of variates is there only if the caller knows of variates.
template <std::size_t N>
Array array_of(const Answer& answer, std::vector<float>& values, std::array<std::size_t, N> shape,
               std::size_t variate_axis) {
  using Shared = std::shared_ptr<Forecast>;
  const nb::capsule owner(new Shared(answer.forecast),
                          [](void* p) noexcept { delete static_cast<Shared*>(p); });
  if (answer.has_variates) return Array(values.data(), N, shape.data(), owner);
  std::copy(shape.begin() + variate_axis + 1, shape.end(), shape.begin() + variate_axis);
  return Array(values.data(), N - 1, shape.data(), owner);
}

template <std::vector<float> Forecast::* kMember>
Array per_step(const Answer& answer) {
  Forecast& forecast = *answer.forecast;
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  return array_of<2>(answer, forecast.*kMember, {variates, horizon}, 0);
}

Array quantiles(const Answer& answer) {
  Forecast& forecast = *answer.forecast;
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  // Of an answer that is not filled yet, which only a look at all of Python's objects can find.
  if (forecast.quantiles.empty())
    return array_of<3>(answer, forecast.quantiles, {0, variates, horizon}, 1);
  const std::size_t levels = forecast.quantiles.size() / (variates * horizon);
  return array_of<3>(answer, forecast.quantiles, {levels, variates, horizon}, 1);
}

nb::object samples(const Answer& answer) {
  Forecast& forecast = *answer.forecast;
  if (forecast.samples.empty()) return nb::none();
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  const std::size_t paths = forecast.samples.size() / (variates * horizon);
  return nb::cast(array_of<3>(answer, forecast.samples, {variates, paths, horizon}, 0));
}

}  // namespace

Series series_of(nb::handle tuple) {
  const auto values = nb::cast<Values>(tuple[1], false);
  Series series{.id = nb::cast<std::string>(tuple[0]),
                .num_variates = static_cast<int>(values.shape(0)),
                .values = copied<float>(values),
                .num_exogenous = nb::cast<int>(tuple[4])};
  copy_if_given<Mask>(tuple[2], series.mask);
  copy_if_given<GroupIds>(tuple[3], series.group_ids);
  copy_if_given<Values>(tuple[5], series.future_exogenous);
  return series;
}

void bind_request(nb::module_& module) {
  nb::class_<Request>(module, "Request")
      .def(
          "__init__",
          [](Request* self, const nb::tuple& wanted, nb::object answer_type) {
            new (self) Request{options_of(wanted), wanted[1], std::move(answer_type)};
          },
          nb::arg("wanted"), nb::arg("answer_type"),
          nb::sig("def __init__(self, wanted: tuple[typing.Any, ...], "
                  "answer_type: type[Forecast]) -> None"));
}

NewAnswer new_answer(const Request& request, bool has_variates) {
  nb::object object = nb::inst_alloc(request.answer_type);
  auto* const answer = new (nb::inst_ptr<Answer>(object))
      Answer{std::make_shared<Forecast>(), request.levels, has_variates};
  nb::inst_mark_ready(object);
  return {std::move(object), answer->forecast.get()};
}

void bind_answer(nb::module_& module) {
  nb::class_<Answer>(module, "Forecast")
      .def_prop_ro("id", [](const Answer& self) { return self.forecast->id; })
      .def_prop_ro("context_length",
                   [](const Answer& self) { return self.forecast->context_length; })
      .def_prop_ro("num_samples", [](const Answer& self) { return self.forecast->num_samples; })
      .def_prop_ro("mean", &per_step<&Forecast::mean>, nb::rv_policy::reference)
      .def_prop_ro("median", &per_step<&Forecast::median>, nb::rv_policy::reference)
      .def_prop_ro("point", &per_step<&Forecast::point>, nb::rv_policy::reference)
      .def_prop_ro(
          "levels", [](const Answer& self) { return self.levels; },
          nb::for_getter(nb::sig("def levels(self) -> tuple[float, ...]")))
      .def_prop_ro("level_values", &quantiles, nb::rv_policy::reference)
      .def_prop_ro("samples", &samples,
                   nb::for_getter(
                       nb::sig("def samples(self) -> numpy.typing.NDArray[numpy.float32] | None")));
}

}  // namespace toto::python
