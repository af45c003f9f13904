// Two engine threads, the fast and the slow lane, each with a bounded queue of requests. Requests
// that wait together are forecast in one batch. Expensive requests go to the slow lane: its engine
// is a twin that shares the weights and runs at low priority, so slow requests do not delay fast
// ones.
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

#include "http_message.h"
#include "tables/forecast_file.h"
#include "toto/toto.h"

namespace toto::server {

struct ForecastAnswer {
  std::vector<Forecast> forecasts = {};  // [series]
  tables::EngineBlock engine = {};
  Timings timings = {};
  ModelFacts facts = {};
  std::vector<std::string> model_warnings = {};
};

// Completion callback: called once on a scheduler thread; must not block. Either an error or an
// answer.
using ForecastDone = std::function<void(std::optional<Error> error, ForecastAnswer answer)>;

struct QueuedForecast {
  std::vector<Series> series = {};
  ForecastOptions options = {};  // `cancelled` and `progress` are the scheduler's
  ClientGone gone = {};
  Clock::time_point deadline = Clock::time_point::max();
  ForecastDone done = {};
};

// The engine in use. Every load gets the next number; twins share it.
struct ActiveEngine {
  std::shared_ptr<const Engine> engine = {};
  std::int64_t number = 0;
  std::string name = {};                    // of the model, in reports
  std::int64_t former_replans = 0;          // of the engines before it
  std::shared_ptr<const Engine> twin = {};  // of the slow lane, after its first request
  std::int64_t replans() const;             // of all engines so far
  tables::EngineBlock block(std::uint64_t seed) const;
  std::vector<std::string> model_warnings() const;
  void describe(std::uint64_t seed, ForecastAnswer& answer) const;  // which engine made it
  ModelFacts facts() const;  // before an engine is loaded those of a patch of one step
};

// The cost of a forecast, known before it is made: values the network reads or draws, weighted by
// how far back each looks. Batch sizes and lanes use only this cost.
double forecast_cost(double num_variates, double length, const ForecastOptions& options,
                     const ModelFacts& facts);
enum class LaneKind { fast, slow };
LaneKind lane_for_cost(double cost);
// Sets the priority of the calling thread and of the threads it starts later.
void lower_priority(int nice);
inline constexpr int kSlowPriority = 10;  // about a tenth of the CPU time when all cores are busy

// Any other work for an engine thread. Returns the number of forecasts it made: they count towards
// the warm-up of the lane's engine.
using EngineTask = std::function<std::int64_t(const ActiveEngine& active)>;

struct SchedulerOptions {
  std::size_t max_queued = 256;  // requests, in each lane
  std::size_t max_batch = 64;    // series per batch
  std::int64_t warm_up = 256;    // forecasts after which a new plan counts as a replan
  std::string model_name = {};   // in reports; empty: the folder's
};

// Called on the engine threads, `queue_full` on the thread that submits.
struct SchedulerEvents {
  std::function<void(std::size_t num_series)> batch = {};
  std::function<void()> queue_full = {};
  // Every finished forecast with its input.
  std::function<void(const Series&, const ForecastOptions&, const Forecast&, const ActiveEngine&)>
      forecast = {};
  std::function<void(std::optional<Error>)> loaded = {};  // after every load
};

class Scheduler {
 public:
  using Load = std::function<Engine(Mode mode)>;
  // Loads the engine on the fast lane's thread; until then work waits.
  Scheduler(const SchedulerOptions& options, Load load, Mode mode, SchedulerEvents events);
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Error(overloaded) if the queue is full, Error(cancelled) when stopping.
  void submit(QueuedForecast forecast);
  // A running task checks its deadline itself.
  void submit(EngineTask task, LaneKind kind, ClientGone gone, Clock::time_point deadline,
              ForecastDone done);
  // Runs before all waiting work; slow forecasts start again. If loading fails, the engine stays.
  void switch_mode(Mode mode, std::function<void(std::optional<Error>)> done);
  void stop();  // after everything accepted has been answered
  // Waiting and running work ends with Error(cancelled). Its callbacks run immediately, even while
  // an engine is being loaded, which cannot be interrupted.
  void cancel_all();

  bool ready() const { return active().engine != nullptr; }
  ActiveEngine active() const;
  std::size_t depth() const;  // requests waiting or being forecast

 private:
  struct QueuedItem;
  struct BatchSlice {
    std::shared_ptr<QueuedItem> item;
    std::size_t count = 0;
  };
  using ModeSwitchDone = std::function<void(std::optional<Error>)>;
  struct ModeSwitch {
    Mode mode = Mode::standard;
    ModeSwitchDone done = {};
  };
  struct EngineLane {
    std::condition_variable wake = {};
    std::deque<std::shared_ptr<QueuedItem>> queue = {};
    std::size_t num_running = 0;
    // Used only by the lane's thread.
    ActiveEngine active = {};
    std::vector<Series> batch = {};
    std::vector<Forecast> answers = {};
    std::int64_t num_forecasts = 0;
    bool warm = false;
    std::thread thread = {};
  };
  EngineLane& lane_of(LaneKind kind) { return kind == LaneKind::fast ? fast_lane_ : slow_lane_; }
  void add(std::shared_ptr<QueuedItem> item, LaneKind kind);
  void enqueue(EngineLane& lane, std::shared_ptr<QueuedItem> item);  // under the lock
  void run(EngineLane& lane);
  void watch();
  void load(Mode mode);
  void adopt_active_engine(EngineLane& lane);  // under the lock
  const Engine& engine_of(EngineLane& lane);
  bool outdated(const EngineLane& lane) const { return lane.active.number != number_; }
  std::vector<BatchSlice> next_slices(EngineLane& lane) const;  // under the lock
  void forecast(EngineLane& lane, std::vector<BatchSlice> slices);
  void run_task(EngineLane& lane, QueuedItem& item);
  void forecast_slices(EngineLane& lane, const std::vector<BatchSlice>& slices);
  void count_forecasts(EngineLane& lane, std::int64_t count);
  bool unwanted(
      const QueuedItem& item) const;  // cancelled, past its deadline, or its client has left
  Error why_unwanted() const;
  void finish(QueuedItem& item, std::optional<Error> error);

  const SchedulerOptions options_;
  const Load load_;
  const SchedulerEvents events_;
  mutable std::mutex mutex_;
  std::condition_variable wake_watch_;
  EngineLane fast_lane_, slow_lane_;
  std::deque<ModeSwitch> switches_;
  ModeSwitchDone loading_;  // callback of the load that is running
  Clock::time_point next_deadline_ = Clock::time_point::max();  // `watch` sleeps until then
  bool stopped_ = false, watched_ = true;
  std::atomic<bool> cancel_all_{false};
  ActiveEngine active_;
  std::atomic<std::int64_t> number_{0};  // of `active_`
  bool tried_ = false;                   // the first load has ended, well or not
  std::thread watch_thread_;
};

}  // namespace toto::server
