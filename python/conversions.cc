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
  const nb::capsule owner(new SharedForecast(answer.forecast),
                          [](void* p) noexcept { delete static_cast<SharedForecast*>(p); });
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

std::optional<Array> samples(const Answer& answer) {
  Forecast& forecast = *answer.forecast;
  if (forecast.samples.empty()) return {};
  const std::size_t variates = forecast.num_variates, horizon = forecast.horizon;
  const std::size_t paths = forecast.samples.size() / (variates * horizon);
  return array_of<3>(answer, forecast.samples, {variates, paths, horizon}, 0);
}

// The array that kMake makes, made once.
template <nb::object Answer::* kKept, auto kMake>
nb::object once(Answer& answer) {
  nb::object& kept = answer.*kKept;
  if (!kept.is_valid()) kept = nb::cast(kMake(answer), nb::rv_policy::reference);
  return kept;
}

// As `forecast.mean += 1` does, with the same array.
template <nb::object Answer::* kKept>
void replace(Answer& answer, nb::object array) {
  answer.*kKept = std::move(array);
}

// (id, context_length, num_samples, levels, mean, median, point, level_values, samples or None): a
// forecast from another process, or a copy.
Answer restored(const nb::tuple& fields) {
  using Given = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
  const auto mean = nb::cast<Given>(fields[4]);
  Answer answer{{}, fields[3], mean.ndim() == 2};
  Forecast& forecast = *answer.forecast;
  forecast.id = nb::cast<std::string>(fields[0]);
  forecast.context_length = nb::cast<int>(fields[1]);
  forecast.num_samples = nb::cast<int>(fields[2]);
  forecast.num_variates = answer.has_variates ? static_cast<int>(mean.shape(0)) : 1;
  forecast.horizon = static_cast<int>(mean.shape(mean.ndim() - 1));
  forecast.mean = copied<float>(mean);
  copy_if_given<Given>(fields[5], forecast.median);
  copy_if_given<Given>(fields[6], forecast.point);
  copy_if_given<Given>(fields[7], forecast.quantiles);
  copy_if_given<Given>(fields[8], forecast.samples);
  return answer;
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
  auto* const answer = new (nb::inst_ptr<Answer>(object)) Answer{{}, request.levels, has_variates};
  nb::inst_mark_ready(object);
  return {std::move(object), &*answer->forecast};
}

void bind_answer(nb::module_& module) {
  nb::class_<Answer>(module, "Forecast")
      .def_prop_rw(
          "id", [](const Answer& self) { return self.forecast->id; },
          [](Answer& self, std::string name) { self.forecast->id = std::move(name); })
      .def_prop_ro("context_length",
                   [](const Answer& self) { return self.forecast->context_length; })
      .def_prop_ro("num_samples", [](const Answer& self) { return self.forecast->num_samples; })
      .def_prop_rw(
          "mean", &once<&Answer::mean, &per_step<&Forecast::mean>>, &replace<&Answer::mean>,
          nb::for_getter(nb::sig("def mean(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(
              nb::sig("def mean(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_rw(
          "median", &once<&Answer::median, &per_step<&Forecast::median>>, &replace<&Answer::median>,
          nb::for_getter(nb::sig("def median(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(
              nb::sig("def median(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_rw(
          "point", &once<&Answer::point, &per_step<&Forecast::point>>, &replace<&Answer::point>,
          nb::for_getter(nb::sig("def point(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(
              nb::sig("def point(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_ro(
          "levels", [](const Answer& self) { return self.levels; },
          nb::for_getter(nb::sig("def levels(self) -> tuple[float, ...]")))
      .def_prop_rw(
          "level_values", &once<&Answer::level_values, &quantiles>, &replace<&Answer::level_values>,
          nb::for_getter(nb::sig("def level_values(self) -> numpy.typing.NDArray[numpy.float32]")),
          nb::for_setter(nb::sig(
              "def level_values(self, value: numpy.typing.NDArray[numpy.float32], /) -> None")))
      .def_prop_rw(
          "samples", &once<&Answer::samples, &samples>, &replace<&Answer::samples>,
          nb::for_getter(
              nb::sig("def samples(self) -> numpy.typing.NDArray[numpy.float32] | None")),
          nb::for_setter(nb::sig(
              "def samples(self, value: numpy.typing.NDArray[numpy.float32] | None, /) -> None")))
      .def(
          "__setstate__",
          [](Answer& self, const nb::tuple& fields) { new (&self) Answer(restored(fields)); },
          nb::sig("def __setstate__(self, fields: tuple[typing.Any, ...], /) -> None"));
}

}  // namespace toto::python
