#include "running_calls.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace toto::python {
namespace {

namespace nb = nanobind;

constexpr std::chrono::milliseconds kGlance{2};

std::atomic<bool> ending = false;
int running = 0;  // with the interpreter's lock
std::atomic<pthread_t> main_thread;

// In a forked process only the forking thread exists, and Python makes it the main one. Objects of
// the other threads are never released; nanobind would report them as leaks.
void forget_the_parents_threads() {
  running = 0;
  main_thread = ::pthread_self();
  nb::set_leak_warnings(false);
}

void end_calls() {
  ending = true;
  while (running > 0) {
    const nb::gil_scoped_release released;
    std::this_thread::sleep_for(kGlance);
  }
  // Daemon threads stop anywhere and never release their objects either.
  const nb::object threads = nb::module_::import_("threading").attr("active_count")();
  if (nb::cast<int>(threads) > 1) nb::set_leak_warnings(false);
}

}  // namespace

Unlocked::Unlocked() {
  if (must_end()) end_thread();
  ++running;
  state_ = PyEval_SaveThread();
}

Unlocked::~Unlocked() {
  PyEval_RestoreThread(state_);
  --running;
}

bool on_main_thread() { return ::pthread_equal(main_thread, ::pthread_self()) != 0; }

// Calls of the main thread, from an exit handler, still work.
bool must_end() { return ending && !on_main_thread(); }

void end_thread() {
  PyErr_SetNone(PyExc_SystemExit);
  throw nb::python_error();
}

void bind_exit(nb::module_& module) {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = static_cast<pthread_t>(nb::cast<std::uint64_t>(main.attr("ident")));
  ::pthread_atfork(nullptr, nullptr, &forget_the_parents_threads);
  module.def("end_calls", &end_calls,
             "At the interpreter's exit: cancels the calls of other threads and waits for them.");
  nb::module_::import_("atexit").attr("register")(module.attr("end_calls"));
}

}  // namespace toto::python
