// Interrupts (Ctrl-C, SIGTERM) during work: the work stops at its next step, and no file is left
// half written.
#pragma once

namespace toto::cli {

// While one of these lives, the first SIGINT, SIGTERM or SIGHUP only sets a flag; the
// second one kills as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted() noexcept;
  static void check();  // Error(cancelled) once interrupted
};

}  // namespace toto::cli
