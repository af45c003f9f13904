// The engine's threads, each with a bounded queue of requests in front of it: requests that arrive
// together are forecast together. What takes long has a thread and an engine of its own, a twin of
// low priority, so that it costs the others next to nothing.
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

// The engine in use. A number tells those apart that were loaded one after the other; twins share
// it.
struct ActiveEngine {
  std::shared_ptr<const Engine> engine = {};
  std::int64_t number = 0;
  std::string name = {};                    // of the model, as reports call it
  std::int64_t former_replans = 0;          // of the engines before it
  std::shared_ptr<const Engine> twin = {};  // for what takes long, once there was such a request
  std::int64_t replans() const;             // of all of them
  io::EngineBlock block(std::uint64_t seed) const;
};

// Which queue work belongs to: what is quick never waits for what is slow.
enum class Pace { quick, slow };
// What a forecast costs, in values that the network reads or draws, weighed by how many each looks
// back at.
double cost_of(double num_variates, double length, const ForecastOptions& options, int patch_size);
Pace pace_of(double cost);
// Of the thread that calls and of those it makes from now on: what is slow gives way.
void lower_priority(int nice);
inline constexpr int kSlowPriority = 10;  // about a tenth of the time if everything else is busy

// Any other work that needs an engine's thread.
using EngineTask = std::function<void(const ActiveEngine& active)>;

struct SchedulerOptions {
  std::size_t max_queued = 256;  // requests, in each of the two queues
  std::size_t max_batch = 64;    // series forecast together
  std::int64_t warm_up = 256;    // forecasts before plans count as replans
  std::string model_name = {};   // as reports call it; empty: the folder's
};

// Called from the engines' threads.
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
  void submit(EngineTask task, Pace pace, ClientGone gone, Clock::time_point deadline, Done done);
  // Before anything that waits; slow forecasts begin again. If loading fails, the engine stays as
  // it was.
  void switch_mode(Mode mode, std::function<void(std::optional<Error>)> done);
  void stop();  // after everything accepted has been answered
  // What waits or runs ends with Error(cancelled); who waits is told so at once, even while an
  // engine is being loaded, which nothing can interrupt.
  void cancel_all();

  bool ready() const { return active().engine != nullptr; }
  // By a task, of what it has forecast with the engine it was given: that warms it up, too.
  void count_forecasts(const ActiveEngine& active, std::int64_t count);
  ActiveEngine active() const;
  std::size_t depth() const;  // requests waiting or being forecast

 private:
  struct Item;
  struct Slice {
    std::shared_ptr<Item> item;
    std::size_t count = 0;
  };
  using SwitchDone = std::function<void(std::optional<Error>)>;
  struct Switch {
    Mode mode = Mode::standard;
    SwitchDone done = {};
  };
  struct Lane {
    std::condition_variable wake = {};
    std::deque<std::shared_ptr<Item>> queue = {};
    std::size_t num_running = 0;
    // Of its thread alone.
    ActiveEngine active = {};
    std::vector<Series> batch = {};
    std::vector<Forecast> answers = {};
    std::int64_t num_forecasts = 0;
    bool warm = false;
    std::thread thread = {};
  };
  Lane& lane_of(Pace pace) { return pace == Pace::quick ? quick_ : slow_; }
  void add(std::shared_ptr<Item> item, Pace pace);
  void enqueue(Lane& lane, std::shared_ptr<Item> item);  // under the lock
  void run(Lane& lane);
  void watch();
  void load(Mode mode);
  void follow(Lane& lane);  // the engine in use, under the lock
  const Engine& engine_of(Lane& lane);
  bool outdated(const Lane& lane) const { return lane.active.number != number_; }
  std::vector<Slice> next_slices(Lane& lane) const;  // under the lock
  void forecast(Lane& lane, std::vector<Slice> slices);
  void run_task(Lane& lane, Item& item);
  void forecast_slices(Lane& lane, const std::vector<Slice>& slices);
  bool unwanted(const Item& item) const;  // nobody waits for it any more, or for too long
  Error why_unwanted() const;
  void finish(Item& item, std::optional<Error> error);

  const SchedulerOptions options_;
  const Load load_;
  const SchedulerEvents events_;
  mutable std::mutex mutex_;
  std::condition_variable wake_watch_;
  Lane quick_, slow_;
  std::deque<Switch> switches_;
  SwitchDone loading_;  // who waits for the engine that is being loaded
  Clock::time_point next_deadline_ = Clock::time_point::max();  // `watch` sleeps until then
  bool stopped_ = false, watched_ = true;
  std::atomic<bool> cancel_all_{false};
  ActiveEngine active_;
  std::atomic<std::int64_t> number_{0};  // of `active_`
  std::atomic<int> patch_size_{1};       // of `active_`
  bool tried_ = false;                   // to load: whether there is an engine is known
  std::thread watch_thread_;
};

// Paths drawn at a time for a variate by a model that forecasts `patch_size` steps in one go; 1
// where none is sampled.
double num_paths(const ForecastOptions& options, int patch_size);
// Floats of an answer to this many variates.
double answer_values(const ForecastOptions& options, double num_variates);

}  // namespace toto::server
