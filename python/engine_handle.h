// An engine for Python: computes without the interpreter's lock, stops at Ctrl-C, and is loaded
// again in a forked process.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "running_calls.h"
#include "toto/toto.h"

namespace toto::python {

inline constexpr std::chrono::milliseconds kPatience{50};  // the longest delay of Ctrl-C

// Tells between steps whether a Python signal handler has raised or the interpreter is exiting.
// Called without the interpreter's lock, which it takes every 50 ms, on the main thread only.
class Interrupts {
 public:
  bool pending();
  // Throws the handler's exception, or ends the thread; returns if there is neither.
  void rethrow() const;

 private:
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  bool handles_signals_ = on_main_thread();
  bool raised_ = false;
};

// The latest request, identified by the objects it was made from: a repeated request is not checked
// and translated again. Needs the interpreter's lock.
class RecentRequest {
 public:
  // Nothing if the objects differ. The quantile levels may be in another list.
  nanobind::object find(const nanobind::tuple& asked) const;
  void keep(nanobind::tuple asked, nanobind::object request);

 private:
  nanobind::object asked_, request_;
};

// Memory reused by the next call of an engine: freeing it after computing would miss the CPU
// caches.
struct Scratch {
  std::vector<Series> series;
  std::vector<Forecast*> targets;
  std::vector<Forecast> forecasts;
  ForecastOptions options;
};

// An engine's counters.
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

  // These take no lock and use no engine thread.
  const ModelInfo& model() const { return loaded_->engine.model(); }
  const EngineOptions& options() const { return loaded_->engine.options(); }
  pid_t process() const { return loaded_->process; }
  std::string kv_cache_name() const { return loaded_->engine.kv_cache_name(); }

  RecentRequest recent;
  std::atomic<double> call_ms = 0;  // the library's part of the latest forecast

  // Needs the interpreter's lock. A call takes the scratch memory and returns it if it succeeds.
  std::unique_ptr<Scratch> take_scratch() {
    return scratch_ ? std::move(scratch_) : std::make_unique<Scratch>();
  }
  void give_back(std::unique_ptr<Scratch> scratch) { scratch_ = std::move(scratch); }

  // Runs work(engine, cancelled) without the interpreter's lock. Calls of several threads run one
  // at a time; a waiting call can be interrupted too.
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

  // Forecasts `items` (series or sessions) into scratch.forecasts, and takes the time.
  template <typename Item>
  void forecast_into(std::span<Item> items, const ForecastOptions& options, Scratch& scratch) {
    scratch.options = options;
    run([&](const Engine& engine, auto cancelled) {
      scratch.options.cancelled = std::move(cancelled);
      const auto start = std::chrono::steady_clock::now();
      engine.forecast_into(items, scratch.options, scratch.forecasts);
      call_ms = milliseconds_since(start);
    });
    scratch.options.cancelled = nullptr;  // refers to this call
  }

  // Inside a signal handler, during a call, the values before that call.
  Counters counters();

 private:
  struct Loaded {
    pid_t process;
    Engine engine;
    std::timed_mutex turn = {};
    std::atomic<std::thread::id> owner = {};  // of `turn`
    Counters before = {};                     // before the running call; for the owner

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
  // A forked process loading its own engine. A new object per process: the parent's flag may stay
  // locked forever.
  struct Reload {
    pid_t process;
    std::once_flag once = {};
    std::shared_ptr<Loaded> loaded = {};
  };
  [[noreturn]] static void refuse_nested_call();
  // Both need the interpreter's lock and release it while loading.
  std::shared_ptr<Loaded> here();
  std::shared_ptr<Loaded> reload();

  std::string folder_;
  EngineOptions options_;
  std::shared_ptr<Loaded> loaded_;
  std::shared_ptr<Reload> reload_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace toto::python
