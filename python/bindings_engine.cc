#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.h"
#include "engine_handle.h"

namespace toto::python {
namespace {

EngineOptions engine_options(const std::string& mode, const std::string& dtype,
                             const std::string& isa, int threads, bool use_kv_cache,
                             int plan_cache_size, const std::string& cache_dir,
                             nb::object on_plan) {
  EngineOptions options{.mode = parse_mode(mode),
                        .dtype = parse_dtype(dtype),
                        .isa = parse_isa(isa),
                        .threads = threads,
                        .use_kv_cache = use_kv_cache,
                        .plan_cache_size = plan_cache_size};
  options.cache.folder = cache_dir;
  if (!on_plan.is_none()) {
    // The engine may release it on any thread.
    auto* const kept = on_plan.release().ptr();
    const std::shared_ptr<PyObject> shared(kept, [](PyObject* object) {
      const nb::gil_scoped_acquire acquired;
      Py_DECREF(object);
    });
    options.on_plan = [shared](std::string_view sentence) {
      const nb::gil_scoped_acquire acquired;
      try {
        nb::handle(shared.get())(nb::str(sentence.data(), sentence.size()));
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("a plan's log line");
      }
    };
  }
  return options;
}

nb::object answer_to_one(EngineHandle& handle, const ForecastCall& request, Scratch& scratch) {
  NewForecastObject answer = new_forecast_object(request, false);
  handle.forecast_into(std::span<const Series>(scratch.series), request.options, scratch);
  std::swap(*answer.forecast, scratch.forecasts.front());  // the next call reuses the old memory
  return std::move(answer.object);
}

nb::list answers_to(EngineHandle& handle, std::span<const Series> series,
                    const ForecastCall& request, bool has_variates, Scratch& scratch) {
  nb::list answers;
  scratch.targets.clear();
  for (std::size_t i = 0; i < series.size(); ++i) {
    NewForecastObject answer = new_forecast_object(request, has_variates);
    scratch.targets.push_back(answer.forecast);
    answers.append(std::move(answer.object));
  }
  handle.forecast_into(series, request.options, scratch);
  // Prefetch all, instead of one cache miss after another.
  for (const Forecast* const target : scratch.targets) __builtin_prefetch(target, 1);
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::swap(*scratch.targets[i], scratch.forecasts[i]);
  }
  return answers;
}

nb::list forecast(EngineHandle& handle, const nb::list& batch, const ForecastCall& request,
                  bool has_variates) {
  std::vector<Series> series;
  series.reserve(batch.size());
  for (const nb::handle item : batch) series.push_back(series_of(item));
  std::unique_ptr<Scratch> scratch = handle.take_scratch();
  nb::list answers = answers_to(handle, series, request, has_variates, *scratch);
  handle.give_back(std::move(scratch));
  warn_of(remarks_on(series, request, handle.model().facts));
  return answers;
}

nb::object forecast_plain(EngineHandle& handle, nb::handle given, const ForecastCall& request) {
  std::unique_ptr<Scratch> scratch = handle.take_scratch();
  const Plain kind = plain_series(given, scratch->series);
  nb::object answer = nb::none();
  if (kind == Plain::one) {
    answer = answer_to_one(handle, request, *scratch);
  } else if (kind == Plain::many) {
    answer = answers_to(handle, scratch->series, request, false, *scratch);
  }
  if (kind != Plain::none) warn_of(remarks_on(scratch->series, request, handle.model().facts));
  handle.give_back(std::move(scratch));
  return answer;
}

nb::object forecast_again(EngineHandle& handle, nb::handle given, const nb::tuple& asked) {
  const nb::object request =
      handle.recent.find(asked);  // a reference: other threads may replace it
  return request.is_valid() ? forecast_plain(handle, given, nb::cast<const ForecastCall&>(request))
                            : nb::none();
}

nb::dict info(const EngineHandle& handle) {
  const ModelInfo& model = handle.model();
  const EngineOptions& options = handle.options();
  nb::dict info;
  info["version"] = std::string(version());
  info["name"] = model.name;
  info["path"] = model.path;
  info["trained"] = model.trained;
  info["weights_sha256"] = model.weights_sha256;
  info["config_sha256"] = model.config_sha256;
  info["architecture"] = model.facts.architecture;
  info["patch_size"] = model.facts.patch;
  for (const NamedNumber& number : model.shape) info[number.name.c_str()] = number.value;
  info["num_parameters"] = model.num_parameters;
  info["minimum_scale"] = model.facts.minimum_scale;
  info["weight_bytes"] = model.weight_bytes;
  info["warnings"] = model.warnings;
  info["mode"] = std::string(name_of(options.mode));
  info["dtype"] = std::string(name_of(options.dtype));
  info["isa"] = std::string(name_of(options.isa));
  info["threads"] = options.threads;
  info["use_kv_cache"] = options.use_kv_cache;
  return info;
}

nb::dict timings(EngineHandle& handle) {
  const Timings timings = handle.counters().timings;
  nb::dict result;
  result["load"] = timings.load;
  result["prefill"] = timings.prefill;
  result["decode"] = timings.decode;
  result["total"] = timings.total;
  result["call"] = handle.call_ms.load();
  return result;
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<EngineHandle>(module, "Engine")
      .def(
          "__init__",
          [](EngineHandle* self, std::string folder, const std::string& mode,
             const std::string& dtype, const std::string& isa, int threads, bool use_kv_cache,
             int plan_cache_size, const std::string& cache_dir, nb::object on_plan) {
            new (self) EngineHandle(std::move(folder),
                                    engine_options(mode, dtype, isa, threads, use_kv_cache,
                                                   plan_cache_size, cache_dir, std::move(on_plan)));
          },
          nb::arg("folder"), nb::kw_only(), nb::arg("mode"), nb::arg("dtype"), nb::arg("isa"),
          nb::arg("threads"), nb::arg("use_kv_cache"), nb::arg("plan_cache_size"),
          nb::arg("cache_dir"), nb::arg("on_plan").none())
      .def("forecast", &forecast, nb::arg("batch"), nb::arg("request"), nb::arg("has_variates"),
           nb::sig("def forecast(self, batch: list[typing.Any], request: Request, "
                   "has_variates: bool) -> list[typing.Any]"))
      .def("forecast_plain", &forecast_plain, nb::arg("series").none(), nb::arg("request"),
           nb::sig("def forecast_plain(self, series: typing.Any, request: Request) -> typing.Any"),
           "None if the series is not a plain array or list: use forecast() then.")
      .def("forecast_again", &forecast_again, nb::arg("series").none(), nb::arg("asked"),
           nb::sig("def forecast_again(self, series: typing.Any, asked: tuple[typing.Any, ...]) "
                   "-> typing.Any"),
           "forecast_plain() with the request of remember(); None if `asked` differs.")
      .def(
          "remember",
          [](EngineHandle& self, nb::tuple asked, nb::object request) {
            self.recent.keep(std::move(asked), std::move(request));
          },
          nb::arg("asked"), nb::arg("request"),
          nb::sig("def remember(self, asked: tuple[typing.Any, ...], request: Request) -> None"))
      .def("info", &info, nb::sig("def info(self) -> dict[str, typing.Any]"))
      .def("timings", &timings, nb::sig("def timings(self) -> dict[str, float]"))
      .def("kv_cache_name", &EngineHandle::kv_cache_name)
      .def("finish_warm_up",
           [](EngineHandle& self) {
             self.run([](const Engine& engine, auto) { engine.finish_warm_up(); });
           })
      .def("plans", [](EngineHandle& self) { return self.counters().plans; })
      .def("replans", [](EngineHandle& self) { return self.counters().replans; });
}

}  // namespace toto::python
