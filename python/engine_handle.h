// An engine as Python holds it: computes without the interpreter's lock, stops at Ctrl-C, and is
// loaded again in a process that was forked.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "running_calls.h"
#include "toto/toto.h"

namespace toto::python {

inline constexpr std::chrono::milliseconds kPatience{50};  // how long Ctrl-C may wait to be seen

// Has a signal arrived whose Python handler raises, or does the interpreter end? Asked between
// steps, without the interpreter's lock, which is taken only once in a while and on the main
// thread.
class Interrupts {
 public:
  bool pending();
  // What the signal's handler raised, or the end of the thread; returns if it was neither.
  void rethrow() const;

 private:
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  bool handles_signals_ = on_main_thread();
  bool raised_ = false;
};

// The latest request, told by the very objects it was made of, so that one that comes again and
// again is neither checked nor translated again. With the interpreter's lock.
class RecentRequest {
 public:
  // Nothing if the objects are others. Levels of quantiles may stand in another list.
  nanobind::object find(const nanobind::tuple& asked) const;
  void keep(nanobind::tuple asked, nanobind::object request);

 private:
  nanobind::object asked_, request_;
};

// What a call leaves to the next one of its engine: memory that is not freed after computing, when
// the caches hold nothing of it.
struct Scratch {
  std::vector<Series> series;
  std::vector<Forecast*> targets;
  std::vector<Forecast> forecasts;
  ForecastOptions options;
};

// What an engine has counted.
struct Counters {
  Timings timings;
  std::int64_t plans = 0, replans = 0;
};

class EngineHandle {
 public:
  EngineHandle(std::string folder, EngineOptions options);
  ~EngineHandle();
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  const std::string& folder() const { return folder_; }
  // Neither locks anything nor needs the threads.
  const ModelInfo& model() const { return loaded_->engine.model(); }
  const EngineOptions& options() const { return loaded_->engine.options(); }
  pid_t process() const { return loaded_->process; }
  std::string kv_cache_name() const { return loaded_->engine.kv_cache_name(); }

  RecentRequest recent;
  std::atomic<double> call_ms = 0;  // of the library's part of the latest forecast

  // With the interpreter's lock. A call takes it for itself and gives it back when it went well.
  std::unique_ptr<Scratch> take_scratch() {
    return scratch_ ? std::move(scratch_) : std::make_unique<Scratch>();
  }
  void give_back(std::unique_ptr<Scratch> scratch) { scratch_ = std::move(scratch); }

  // work(engine, cancelled) without the interpreter's lock; calls of several threads take turns,
  // and one that waits can be interrupted, too.
  template <typename Work>
  auto run(const Work& work) {
    const std::shared_ptr<Loaded> loaded = here();
    if (loaded->is_mine()) refuse_nested_call();
    Interrupts interrupts;
    try {
      const Unlocked unlocked;
      std::unique_lock turn(loaded->turn, std::defer_lock);
      while (!turn.try_lock_for(kPatience)) {
        if (interrupts.pending()) fail(ErrorCode::cancelled, "interrupted while waiting");
      }
      const Ownership mine(*loaded);
      return work(loaded->engine, [&interrupts] { return interrupts.pending(); });
    } catch (const Error&) {
      interrupts.rethrow();
      throw;
    }
  }

  // In a signal's handler, in the middle of a call, those of before the call.
  Counters counters();

 private:
  struct Loaded {
    pid_t process;
    Engine engine;
    std::timed_mutex turn = {};
    std::atomic<std::thread::id> owner = {};  // of the turn
    Counters before = {};                     // its call; for the owner

    bool is_mine() const { return owner == std::this_thread::get_id(); }
  };
  class Ownership {
   public:
    explicit Ownership(Loaded& loaded);
    ~Ownership() { loaded_.owner = std::thread::id(); }
    Ownership(const Ownership&) = delete;
    Ownership& operator=(const Ownership&) = delete;

   private:
    Loaded& loaded_;
  };
  // A forked process on its way to an engine of its own. Made anew in each process: what another
  // one held may be locked for ever.
  struct Reload {
    pid_t process;
    std::once_flag once = {};
    std::shared_ptr<Loaded> loaded = {};
  };
  [[noreturn]] static void refuse_nested_call();
  // Both with the interpreter's lock, which is given up while loading.
  std::shared_ptr<Loaded> here();
  std::shared_ptr<Loaded> reload();

  std::string folder_;
  EngineOptions options_;
  std::shared_ptr<Loaded> loaded_;
  std::shared_ptr<Reload> reload_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace toto::python
