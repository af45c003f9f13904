#include <nanobind/stl/string.h>

#include <utility>

#include "bindings.h"
#include "engine_handle.h"

namespace toto::python {
namespace {

// A session, bound to its process: its history is not in a file, so a forked process cannot load
// it.
class SessionHandle {
 public:
  SessionHandle(EngineHandle& engine, const nb::tuple& history, std::size_t max_bytes,
                std::size_t max_length)
      : engine_(engine),
        session_(new Session(engine.run([&, series = series_of(history)](const Engine& e, auto) {
          return e.open(series, {.max_bytes = max_bytes, .max_length = max_length});
        }))),
        process_(engine.process()) {}
  // A forked process must not destroy it: see abandon_if_parents in engine_handle.cc.
  ~SessionHandle() {
    if (process_ != ::getpid()) session_.release();  // NOLINT(bugprone-unused-return-value)
  }
  SessionHandle(const SessionHandle&) = delete;
  SessionHandle& operator=(const SessionHandle&) = delete;

  void append(const Values& values) {
    check_process();
    const std::size_t variates = session_->series().num_variates;
    if (values.shape(0) != variates) {
      fail(ErrorCode::invalid_argument,
           "{} variates are appended to a session of {}, expected the same number", values.shape(0),
           variates);
    }
    engine_.run(
        [&](const Engine&, auto) { session_->append(std::span(values.data(), values.size())); });
  }

  nb::object forecast(const ForecastCall& request, bool has_variates) {
    check_process();
    std::unique_ptr<Scratch> scratch = engine_.take_scratch();
    NewForecastObject answer = new_forecast_object(request, has_variates);
    Session* session = session_.get();
    engine_.forecast_into(std::span(&session, 1), request.options, *scratch);
    std::swap(*answer.forecast, scratch->forecasts.front());
    engine_.give_back(std::move(scratch));
    warn_of(engine_.run([&](const Engine& engine, auto) {
      return remarks_on(std::span(&session_->series(), 1), request, engine.model().facts);
    }));
    return std::move(answer.object);
  }

  std::size_t length() {
    check_process();
    return engine_.run([&](const Engine&, auto) { return session_->series().length(); });
  }

  nb::dict stats() {
    check_process();
    const SessionStats stats = engine_.run([&](const Engine&, auto) { return session_->stats(); });
    nb::dict result;
    result["forecasts"] = stats.forecasts;
    result["patches_reused"] = stats.patches_reused;
    result["patches_computed"] = stats.patches_computed;
    result["points_dropped"] = stats.points_dropped;
    result["contexts"] = stats.contexts;
    result["bytes"] = stats.bytes;
    return result;
  }

 private:
  void check_process() const {
    if (process_ == ::getpid()) return;
    fail(ErrorCode::internal,
         "this session was opened by process {} and this is process {}, forked from it; a session "
         "stays in its process: open one here with engine.session(history)",
         process_, ::getpid());
  }

  EngineHandle& engine_;  // kept alive by Python; its lock guards session_
  std::unique_ptr<Session> session_;
  pid_t process_;
};

}  // namespace

void bind_session(nb::module_& module) {
  module.attr("SESSION_MAX_BYTES") = SessionOptions().max_bytes;
  module.attr("SESSION_MAX_LENGTH") = SessionOptions().max_length;
  nb::class_<SessionHandle>(module, "Session")
      .def(nb::init<EngineHandle&, const nb::tuple&, std::size_t, std::size_t>(),
           nb::keep_alive<1, 2>(), nb::arg("engine"), nb::arg("history"), nb::kw_only(),
           nb::arg("max_bytes"), nb::arg("max_length"),
           nb::sig("def __init__(self, engine: Engine, history: tuple[typing.Any, ...], *, "
                   "max_bytes: int, max_length: int) -> None"))
      .def("append", &SessionHandle::append, nb::arg("values"))
      .def("forecast", &SessionHandle::forecast, nb::arg("request"), nb::arg("has_variates"),
           nb::sig("def forecast(self, request: Request, has_variates: bool) -> typing.Any"))
      .def("length", &SessionHandle::length)
      .def("stats", &SessionHandle::stats, nb::sig("def stats(self) -> dict[str, int]"));
}

}  // namespace toto::python
