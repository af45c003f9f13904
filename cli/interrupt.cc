#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "base/error.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

std::atomic<bool> was_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not take a lock");

extern "C" void remember_interrupt(int) { was_interrupted.store(true); }

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void set_handler(void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : kSignals) {
    struct sigaction before{};
    // Under nohup a hang-up stays ignored.
    const bool unheard = signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 &&
                         before.sa_handler == SIG_IGN;
    if (!unheard) sigaction(signal, &action, nullptr);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  io::watch_interrupts(interrupted);  // while an output is a pipe without a reader
  set_handler(remember_interrupt, SA_RESETHAND | SA_RESTART);
}

InterruptGuard::~InterruptGuard() {
  set_handler(SIG_DFL, 0);
  io::watch_interrupts(nullptr);
}

bool InterruptGuard::interrupted() noexcept { return was_interrupted.load(); }

void InterruptGuard::check() {
  if (interrupted()) fail(ErrorCode::cancelled, "interrupted; nothing was written");
}

}  // namespace toto::cli
