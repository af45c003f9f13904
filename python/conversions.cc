#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
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

using Doubles = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Rounded once. What overflows is no infinity that the caller gave.
std::vector<float> rounded(const Doubles& array) {
  std::vector<float> values(array.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = array.data()[i];
    values[i] = static_cast<float>(value);
    if (std::isinf(values[i]) && !std::isinf(value)) {
      fail(ErrorCode::invalid_argument,
           "the series holds {} at step {}, expected numbers within float32 (3.4e38)", value,
           i % array.shape(1));
    }
  }
  return values;
}

}  // namespace

Series series_of(nb::handle tuple) {
  const auto values =
      nb::cast<nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(tuple[1], false);
  Series series{.id = nb::cast<std::string>(tuple[0]),
                .num_variates = static_cast<int>(values.shape(0)),
                .values = values.dtype() == nb::dtype<double>()
                              ? rounded(nb::cast<Doubles>(tuple[1]))
                              : copied<float>(nb::cast<Values>(tuple[1])),
                .num_exogenous = nb::cast<int>(tuple[4])};
  copy_if_given<Mask>(tuple[2], series.mask);
  copy_if_given<GroupIds>(tuple[3], series.group_ids);
  copy_if_given<Values>(tuple[5], series.future_exogenous);
  return series;
}

ForecastOptions options_of(nb::handle tuple) {
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

void bind_options(nb::module_& module) {
  nb::class_<ForecastOptions>(module, "Options")
      .def(
          "__init__",
          [](ForecastOptions* self, const nb::tuple& wanted) {
            new (self) ForecastOptions(options_of(wanted));
          },
          nb::arg("wanted"), nb::sig("def __init__(self, wanted: tuple[typing.Any, ...]) -> None"));
}

nb::tuple answer_of(Forecast forecast) {
  auto* kept = new Forecast(std::move(forecast));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Forecast*>(p); });
  const std::size_t variates = kept->num_variates, horizon = kept->horizon;
  const std::array<std::size_t, 2> one = {variates, horizon};
  const std::array<std::size_t, 3> levels = {kept->quantiles.size() / (variates * horizon),
                                             variates, horizon};
  const std::array<std::size_t, 3> paths = {variates, kept->samples.size() / (variates * horizon),
                                            horizon};
  nb::object samples = nb::none();
  if (!kept->samples.empty()) {
    samples = nb::cast(Array(kept->samples.data(), paths.size(), paths.data(), owner));
  }
  return nb::make_tuple(kept->id, kept->context_length, kept->num_samples,
                        Array(kept->mean.data(), one.size(), one.data(), owner),
                        Array(kept->median.data(), one.size(), one.data(), owner),
                        Array(kept->point.data(), one.size(), one.data(), owner),
                        Array(kept->quantiles.data(), levels.size(), levels.data(), owner),
                        samples);
}

}  // namespace toto::python
