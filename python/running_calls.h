// Calls that compute without the interpreter's lock, and what becomes of them when it ends.
#pragma once

#include <nanobind/nanobind.h>

namespace toto::python {

// The interpreter's lock is free while this lives. An interpreter that ends takes the thread that
// asks for the lock down by unwinding its stack, which C++ answers with abort(): so it waits, at
// exit, until none of these is left, and threads other than its main one get no new one.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

bool on_main_thread();  // where alone Python runs the handlers of signals

// Is the interpreter waiting for this thread's call to end?
bool must_end();
[[noreturn]] void end_thread();  // SystemExit, of which a thread says nothing

void bind_exit(nanobind::module_& module);

}  // namespace toto::python
