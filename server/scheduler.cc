#include "scheduler.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "workers.h"

namespace toto::server {
namespace {

// Cost of one batch: some tens of milliseconds of the bundled model. Larger requests take several.
constexpr double kBatchCost = 1 << 15;
// Requests that cost more go to the slow lane.
constexpr double kMaxFastCost = 1 << 14;

double cost_of_series(const Series& series, const ForecastOptions& options,
                      const ModelFacts& facts) {
  return forecast_cost(series.num_variates, static_cast<double>(series.length()), options, facts);
}

bool same_forecast(const ForecastOptions& a, const ForecastOptions& b) {
  return a.horizon == b.horizon && a.quantiles == b.quantiles && a.max_context == b.max_context &&
         a.num_samples == b.num_samples && a.num_paths == b.num_paths && a.decode == b.decode &&
         a.missing == b.missing && a.scale == b.scale && a.point.kind == b.point.kind &&
         a.point.a == b.point.a && a.point.b == b.point.b && a.seed == b.seed &&
         a.independent_streams == b.independent_streams && a.keep_samples == b.keep_samples;
}

Error shutdown_error() { return {ErrorCode::cancelled, "the server is shutting down"}; }

Error deadline_error() {
  return {ErrorCode::cancelled,
          "the forecast did not finish in time; ask for less, or again when the server is less "
          "busy"};
}

}  // namespace

double forecast_cost(double num_variates, double length, const ForecastOptions& options,
                     const ModelFacts& facts) {
  // At this distance looking back costs as much as everything else done for a value.
  constexpr double kLookBack = 1 << 14;
  const double context = std::min(length, static_cast<double>(options.max_context));
  const double values = context + std::max(planned_paths(options, facts), 1) * options.horizon;
  return num_variates * values * (1 + (context + options.horizon + num_variates) / kLookBack);
}

LaneKind lane_for_cost(double cost) {
  return cost > kMaxFastCost ? LaneKind::slow : LaneKind::fast;
}

void lower_priority(int nice) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice);
}

tables::EngineBlock ActiveEngine::block(std::uint64_t seed) const {
  return tables::describe(*engine, name, seed);
}

ModelFacts ActiveEngine::facts() const {
  return engine ? engine->model().facts : ModelFacts{.patch = 1, .block = 1, .can_sample = true};
}

std::int64_t ActiveEngine::replans() const {
  return former_replans + (engine ? engine->replans() : 0) + (twin ? twin->replans() : 0);
}

// A forecast and its progress, or a task.
struct Scheduler::QueuedItem {
  QueuedForecast forecast;
  EngineTask task = {};
  std::size_t taken = 0;  // series in earlier batches
  ForecastAnswer answer = {};
};

bool Scheduler::unwanted(const QueuedItem& item) const {
  return cancel_all_ || (item.forecast.gone && item.forecast.gone->load()) ||
         Clock::now() >= item.forecast.deadline;
}

Error Scheduler::why_unwanted() const { return cancel_all_ ? shutdown_error() : deadline_error(); }

Scheduler::Scheduler(const SchedulerOptions& options, Load load, Mode mode, SchedulerEvents events)
    : options_(options), load_(std::move(load)), events_(std::move(events)) {
  switches_.push_back({.mode = mode, .done = events_.loaded});
  fast_lane_.thread = std::thread([this] { run(fast_lane_); });
  slow_lane_.thread = std::thread([this] {
    lower_priority(kSlowPriority);
    run(slow_lane_);
  });
  watch_thread_ = std::thread([this] { watch(); });
}

void Scheduler::submit(QueuedForecast forecast) {
  auto item = std::make_shared<QueuedItem>();
  item->forecast = std::move(forecast);
  item->answer.forecasts.reserve(item->forecast.series.size());
  double cost = 0;
  const ModelFacts facts = active().facts();
  for (const Series& series : item->forecast.series) {
    cost += cost_of_series(series, item->forecast.options, facts);
  }
  add(std::move(item), lane_for_cost(cost));
}

void Scheduler::submit(EngineTask task, LaneKind kind, ClientGone gone, Clock::time_point deadline,
                       ForecastDone done) {
  auto item = std::make_shared<QueuedItem>();
  item->forecast.gone = std::move(gone);
  item->forecast.deadline = deadline;
  item->forecast.done = std::move(done);
  item->task = std::move(task);
  add(std::move(item), kind);
}

void Scheduler::add(std::shared_ptr<QueuedItem> item, LaneKind kind) {
  EngineLane& lane = lane_of(kind);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || cancel_all_) throw shutdown_error();
    const std::size_t waiting = lane.queue.size() + lane.num_running;
    if (waiting >= options_.max_queued) {
      if (events_.queue_full) events_.queue_full();
      fail(ErrorCode::overloaded,
           "{} requests are waiting, the most that --queue allows; try again", waiting);
    }
    enqueue(lane, std::move(item));
  }
  lane.wake.notify_one();
}

void Scheduler::enqueue(EngineLane& lane, std::shared_ptr<QueuedItem> item) {
  if (item->forecast.deadline < next_deadline_) wake_watch_.notify_one();
  lane.queue.push_back(std::move(item));
}

void Scheduler::switch_mode(Mode mode, std::function<void(std::optional<Error>)> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_ && !cancel_all_) {
      switches_.push_back({mode, std::move(done)});
      done = {};
    }
  }
  if (done) return done(shutdown_error());
  fast_lane_.wake.notify_one();
}

void Scheduler::cancel_all() {
  {
    const std::lock_guard lock(mutex_);
    cancel_all_ = true;
  }
  wake_watch_.notify_one();
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  for (EngineLane* lane : {&fast_lane_, &slow_lane_}) {
    lane->wake.notify_one();
    if (lane->thread.joinable()) lane->thread.join();
  }
  {
    const std::lock_guard lock(mutex_);
    watched_ = false;
  }
  wake_watch_.notify_one();
  if (watch_thread_.joinable()) watch_thread_.join();
}

// Answers requests at their deadline even while the engines are busy.
void Scheduler::watch() {
  std::unique_lock lock(mutex_);
  while (watched_) {
    std::vector<std::shared_ptr<QueuedItem>> late;
    std::vector<ModeSwitchDone> given_up;
    const Clock::time_point now = Clock::now();
    next_deadline_ = Clock::time_point::max();
    for (EngineLane* lane : {&fast_lane_, &slow_lane_}) {
      std::erase_if(lane->queue, [&](const std::shared_ptr<QueuedItem>& item) {
        const bool is_late = cancel_all_ || now >= item->forecast.deadline;
        if (is_late) late.push_back(item);
        if (!is_late) next_deadline_ = std::min(next_deadline_, item->forecast.deadline);
        return is_late;
      });
    }
    if (cancel_all_) {
      for (ModeSwitch& wanted : switches_) given_up.push_back(std::move(wanted.done));
      switches_.clear();
      given_up.push_back(std::exchange(loading_, {}));
      std::erase_if(given_up, [](const ModeSwitchDone& done) { return !done; });
    }
    if (!late.empty() || !given_up.empty()) {
      lock.unlock();
      for (const auto& item : late) finish(*item, why_unwanted());
      for (const ModeSwitchDone& done : given_up) done(shutdown_error());
      late.clear();
      lock.lock();
    } else {
      wait_until(wake_watch_, lock, next_deadline_);
    }
  }
}

ActiveEngine Scheduler::active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

std::size_t Scheduler::depth() const {
  const std::lock_guard lock(mutex_);
  return fast_lane_.queue.size() + fast_lane_.num_running + slow_lane_.queue.size() +
         slow_lane_.num_running;
}

// The loop of a lane's thread. Engines are loaded on the fast lane; the slow lane adopts them.
void Scheduler::run(EngineLane& lane) {
  const bool loads = &lane == &fast_lane_;
  for (;;) {
    std::optional<Mode> wanted;
    std::vector<BatchSlice> slices;
    {
      std::unique_lock lock(mutex_);
      lane.num_running = 0;
      lane.wake.wait(lock, [&] {
        return (loads && !switches_.empty()) || outdated(lane) ||
               (lane.queue.empty() ? stopped_ : tried_);
      });
      if (loads && !switches_.empty()) {
        wanted = switches_.front().mode;
        loading_ = std::move(switches_.front().done);
        switches_.pop_front();
      } else if (outdated(lane)) {
        adopt_active_engine(lane);
      } else if (lane.queue.empty()) {
        return;  // stopped, and everything is answered
      } else {
        slices = next_slices(lane);
        lane.num_running = slices.size();
      }
    }
    if (wanted) load(*wanted);
    if (!slices.empty()) forecast(lane, std::move(slices));
  }
}

// Immediately after a switch, not at the next request: it frees the former engine's memory.
void Scheduler::adopt_active_engine(EngineLane& lane) {
  lane.active = active_;
  lane.active.twin = {};
  if (&lane == &slow_lane_) lane.active.engine = {};
  lane.num_forecasts = 0;
  lane.warm = false;
}

// Makes a twin on the thread that will use it: the twin's threads inherit its priority.
const Engine& Scheduler::engine_of(EngineLane& lane) {
  if (!lane.active.engine) {
    const ActiveEngine now = active();
    if (!now.engine) fail(ErrorCode::cancelled, "there is no engine");
    lane.active.engine = std::make_shared<const Engine>(now.engine->twin());
    const std::lock_guard lock(mutex_);
    if (!outdated(lane)) active_.twin = lane.active.engine;
  }
  return *lane.active.engine;
}

void Scheduler::load(Mode mode) {
  std::optional<Error> error;
  try {
    auto engine = std::make_shared<const Engine>(load_(mode));
    std::string name = options_.model_name.empty() ? engine->model().name : options_.model_name;
    ActiveEngine next{std::move(engine), active_.number + 1, std::move(name)};
    next.former_replans = active().replans();
    const std::lock_guard lock(mutex_);
    std::swap(active_, next);  // the former engine is freed after the lock
    number_ = active_.number;
  } catch (const Error& what) {
    error = what;
  } catch (const std::bad_alloc&) {
    error = Error(ErrorCode::out_of_memory, "not enough memory to load the model");
  } catch (const std::exception& what) {
    error = Error(ErrorCode::internal, what.what());
  }
  ModeSwitchDone done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(loading_, {});
    tried_ = true;
  }
  slow_lane_.wake.notify_one();
  if (done) done(std::move(error));
}

// The oldest request and all that can be batched with it. An unfinished request goes to the end of
// the queue, so a request of many series delays the others by one batch at most. A single series is
// never split: that is why expensive ones have a separate lane.
std::vector<Scheduler::BatchSlice> Scheduler::next_slices(EngineLane& lane) const {
  const ModelFacts facts = active_.facts();
  std::vector<BatchSlice> slices;
  double cost = 0;
  std::size_t num_series = 0;
  std::deque<std::shared_ptr<QueuedItem>> later;
  while (!lane.queue.empty()) {
    std::shared_ptr<QueuedItem> item = std::move(lane.queue.front());
    lane.queue.pop_front();
    const bool first = slices.empty();
    const bool fits =
        first || (!item->task && !slices.front().item->task && cost < kBatchCost &&
                  num_series < options_.max_batch &&
                  same_forecast(slices.front().item->forecast.options, item->forecast.options));
    if (!fits) {
      later.push_back(std::move(item));
      continue;
    }
    BatchSlice slice{.item = item};
    const std::vector<Series>& series = item->forecast.series;
    for (std::size_t i = item->taken; i < series.size(); ++i) {
      if (num_series > 0 && (cost >= kBatchCost || num_series >= options_.max_batch)) break;
      cost += cost_of_series(series[i], item->forecast.options, facts);
      ++num_series;
      ++slice.count;
    }
    slices.push_back(std::move(slice));
  }
  lane.queue = std::move(later);
  return slices;
}

void Scheduler::run_task(EngineLane& lane, QueuedItem& item) {
  std::optional<Error> error;
  try {
    engine_of(lane);
    count_forecasts(lane, item.task(lane.active));
  } catch (const Error& what) {
    error = what.code() == ErrorCode::cancelled && unwanted(item) ? why_unwanted() : what;
  } catch (const std::exception& what) {
    error = Error(ErrorCode::internal, what.what());
  }
  finish(item, std::move(error));
}

void Scheduler::forecast(EngineLane& lane, std::vector<BatchSlice> slices) {
  std::erase_if(slices, [this](const BatchSlice& slice) {
    QueuedItem& item = *slice.item;
    if (!unwanted(item)) return false;
    finish(item, why_unwanted());
    return true;
  });
  if (slices.empty()) return;
  if (slices.front().item->task) return run_task(lane, *slices.front().item);
  try {
    forecast_slices(lane, slices);
  } catch (const Error& error) {
    const bool cancelled = error.code() == ErrorCode::cancelled;
    if (cancelled && outdated(lane)) {  // the mode was switched: again on the new engine
      const std::lock_guard lock(mutex_);
      for (BatchSlice& slice : slices) enqueue(lane, std::move(slice.item));
      return;
    }
    if (slices.size() == 1) {
      return finish(*slices.front().item, cancelled ? why_unwanted() : error);
    }
    // One request is wrong or cancelled: forecast each alone, so that the others are answered.
    for (BatchSlice& slice : slices) forecast(lane, {std::move(slice)});
    return;
  } catch (const std::exception& error) {
    for (const BatchSlice& slice : slices) {
      finish(*slice.item, Error(ErrorCode::internal, error.what()));
    }
    return;
  }
  for (BatchSlice& slice : slices) {
    QueuedItem& item = *slice.item;
    if (item.answer.forecasts.size() == item.forecast.series.size()) {
      finish(item, std::nullopt);
    } else {
      const std::lock_guard lock(mutex_);
      enqueue(lane, std::move(slice.item));
    }
  }
}

void Scheduler::forecast_slices(EngineLane& lane, const std::vector<BatchSlice>& slices) {
  const Engine& engine = engine_of(lane);
  std::vector<Series>& batch = lane.batch;
  batch.clear();
  for (const BatchSlice& slice : slices) {
    QueuedItem& item = *slice.item;
    for (std::size_t i = 0; i < slice.count; ++i) {
      batch.push_back(std::move(item.forecast.series[item.taken + i]));
    }
  }
  const auto give_back = [&] {
    std::size_t next = 0;
    for (const BatchSlice& slice : slices) {
      for (std::size_t i = 0; i < slice.count; ++i) {
        slice.item->forecast.series[slice.item->taken + i] = std::move(batch[next++]);
      }
    }
  };
  ForecastOptions options = slices.front().item->forecast.options;
  options.cancelled = [this, &slices, &lane] {
    return outdated(lane) ||
           std::all_of(slices.begin(), slices.end(),
                       [this](const BatchSlice& slice) { return unwanted(*slice.item); });
  };
  try {
    engine.forecast_into(batch, options, lane.answers);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  if (events_.batch) events_.batch(batch.size());
  count_forecasts(lane, static_cast<std::int64_t>(batch.size()));
  const Timings timings = engine.timings();
  const tables::EngineBlock block = lane.active.block(options.seed);
  std::size_t next = 0;
  for (const BatchSlice& slice : slices) {
    QueuedItem& item = *slice.item;
    for (std::size_t i = 0; i < slice.count; ++i, ++next) {
      if (events_.forecast) {
        events_.forecast(item.forecast.series[item.taken + i], item.forecast.options,
                         lane.answers[next], lane.active);
      }
      item.answer.forecasts.push_back(std::move(lane.answers[next]));
    }
    item.taken += slice.count;
    item.answer.engine = block;
    item.answer.timings.load = timings.load;
    item.answer.timings.prefill += timings.prefill;
    item.answer.timings.decode += timings.decode;
    item.answer.timings.total += timings.total;
  }
}

void Scheduler::count_forecasts(EngineLane& lane, std::int64_t count) {
  lane.num_forecasts += count;
  if (lane.warm || lane.num_forecasts < options_.warm_up) return;
  lane.active.engine->finish_warm_up();
  lane.warm = true;
}

void Scheduler::finish(QueuedItem& item, std::optional<Error> error) {
  if (!item.forecast.done) return;
  const ForecastDone done = std::exchange(item.forecast.done, {});
  item.forecast.series = {};  // freed before the answer is written
  done(std::move(error), std::move(item.answer));
}

}  // namespace toto::server
