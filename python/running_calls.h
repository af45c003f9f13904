// Calls that compute without the interpreter's lock, and their end when the interpreter exits.
#pragma once

#include <nanobind/nanobind.h>

namespace toto::python {

// Releases the interpreter's lock for its lifetime. An exiting interpreter unwinds the stack of a
// thread that asks for the lock, which makes C++ call abort(): so the exit waits until no object of
// this class is left, and other threads than the main one cannot create new ones.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

bool on_main_thread();  // the only thread that runs Python's signal handlers

// Whether the interpreter is exiting and waits for this thread's call.
bool must_end();
[[noreturn]] void end_thread();  // SystemExit, which a thread does not report

void bind_exit(nanobind::module_& module);

}  // namespace toto::python
