// The one engine thread: a bounded queue of requests in front of it, requests that arrive together
// forecast together, large ones in turns with the others.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/forecast_file.h"
#include "message.h"
#include "toto/toto.h"

namespace toto::server {

struct Answer {
  std::vector<Forecast> forecasts = {};  // [series]
  io::EngineBlock engine = {};
  Timings timings = {};
};

// What somebody waits for: called once, on a thread of the scheduler, so it must only hand over.
// Without an error there is an answer.
using Done = std::function<void(std::optional<Error> error, Answer answer)>;

struct Job {
  std::vector<Series> series = {};
  ForecastOptions options = {};  // `cancelled` and `progress` are the scheduler's
  ClientGone gone = {};
  Clock::time_point deadline = Clock::time_point::max();
  Done done = {};
};

// The engine in use. A number tells engines apart: sessions belong to one.
struct ActiveEngine {
  std::shared_ptr<const Engine> engine = {};
  std::int64_t number = 0;
  std::string name = {};            // of the model, as reports call it
  std::int64_t former_replans = 0;  // of the engines before it
  std::int64_t replans() const;     // of all of them
  io::EngineBlock block(std::uint64_t seed) const;
};

// Any other work that needs the engine thread.
using EngineTask = std::function<void(const ActiveEngine& active)>;

struct SchedulerOptions {
  std::size_t max_queued = 256;  // requests
  std::size_t max_batch = 64;    // series forecast together
  std::int64_t warm_up = 256;    // forecasts before plans count as replans
  std::string model_name = {};   // as reports call it; empty: the folder's
};

// Called from the engine thread.
struct SchedulerEvents {
  std::function<void(std::size_t num_series)> batch = {};
  // Every forecast that was answered, with what it was made from.
  std::function<void(const Series&, const ForecastOptions&, const Forecast&, const ActiveEngine&)>
      forecast = {};
  std::function<void(std::optional<Error>)> loaded = {};  // of every load, the first included
};

class Scheduler {
 public:
  using Load = std::function<Engine(Mode mode)>;
  // Loads the engine on its own thread; until then jobs wait.
  Scheduler(const SchedulerOptions& options, Load load, Mode mode, SchedulerEvents events);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Error(overloaded) if the queue is full, Error(cancelled) when stopping.
  void submit(Job job);
  // A task that has begun looks at the deadline itself.
  void submit(EngineTask task, ClientGone gone, Clock::time_point deadline, Done done);
  // Before anything that waits. If loading fails, the engine stays as it was.
  void switch_mode(Mode mode, std::function<void(std::optional<Error>)> done);
  void stop();                               // after everything accepted has been answered
  void cancel_all() { cancel_all_ = true; }  // what waits or runs ends with Error(cancelled)

  bool ready() const { return active().engine != nullptr; }
  // By a task, of what it has forecast: it warms up the engine too.
  void count_forecasts(std::int64_t count);
  ActiveEngine active() const;
  std::size_t depth() const;  // requests waiting or being forecast

 private:
  struct Item;
  struct Slice {
    std::shared_ptr<Item> item;
    std::size_t count = 0;
  };
  struct Switch {
    Mode mode = Mode::standard;
    std::function<void(std::optional<Error>)> done = {};
  };
  void add(std::shared_ptr<Item> item);
  void enqueue(std::shared_ptr<Item> item);  // under the lock
  void run();
  void watch();
  void load(const Switch& wanted);
  std::vector<Slice> next_slices();  // under the lock
  void forecast(std::vector<Slice> slices);
  void forecast_slices(const std::vector<Slice>& slices);
  bool unwanted(const Item& item) const;  // nobody waits for it any more, or for too long
  void finish(Item& item, std::optional<Error> error);

  const SchedulerOptions options_;
  const Load load_;
  const SchedulerEvents events_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, wake_watch_;
  std::deque<std::shared_ptr<Item>> queue_;
  std::deque<Switch> switches_;
  std::size_t num_running_ = 0;
  Clock::time_point next_deadline_ = Clock::time_point::max();  // `watch` sleeps until then
  bool stopped_ = false, watched_ = true;
  std::atomic<bool> cancel_all_{false};
  ActiveEngine active_;
  // Of the engine thread alone.
  std::vector<Series> batch_;
  std::vector<Forecast> answers_;
  std::int64_t num_forecasts_ = 0;
  bool warm_ = false;
  std::thread thread_, watch_thread_;
};

// Paths drawn at a time for a variate by a model that forecasts `patch_size` steps in one go; 1
// where none is sampled.
double num_paths(const ForecastOptions& options, int patch_size);
// Floats of an answer to this many variates.
double answer_values(const ForecastOptions& options, double num_variates);

}  // namespace toto::server
