#include "scheduler.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace toto::server {
namespace {

// What one turn of an engine may cost: some tens of milliseconds of the bundled model. Who asks for
// more gets more turns.
constexpr double kTurnCost = 1 << 15;
// Requests that cost more are slow ones.
constexpr double kQuickCost = 1 << 14;
// So far back a value's look costs as much as everything else that is done for it.
constexpr double kLookBack = 1 << 14;

double cost_of_series(const Series& series, const ForecastOptions& options, int patch_size) {
  return cost_of(series.num_variates, static_cast<double>(series.length()), options, patch_size);
}

bool same_forecast(const ForecastOptions& a, const ForecastOptions& b) {
  return a.horizon == b.horizon && a.quantiles == b.quantiles && a.max_context == b.max_context &&
         a.num_samples == b.num_samples && a.decode == b.decode && a.missing == b.missing &&
         a.point.kind == b.point.kind && a.point.a == b.point.a && a.point.b == b.point.b &&
         a.seed == b.seed && a.independent_streams == b.independent_streams &&
         a.keep_samples == b.keep_samples;
}

Error shutdown_error() { return {ErrorCode::cancelled, "the server is shutting down"}; }

Error deadline_error() {
  return {ErrorCode::cancelled,
          "the forecast did not finish in time; ask for less, or again when the server is less "
          "busy"};
}

}  // namespace

double num_paths(const ForecastOptions& options, int patch_size) {
  if (options.num_samples > 0) return options.num_samples;
  return options.decode == Decode::sample && options.horizon > patch_size ? kDefaultPaths : 1;
}

double cost_of(double num_variates, double length, const ForecastOptions& options, int patch_size) {
  const double context = std::min(length, static_cast<double>(options.max_context));
  const double values = context + num_paths(options, patch_size) * options.horizon;
  return num_variates * values * (1 + (context + options.horizon + num_variates) / kLookBack);
}

Pace pace_of(double cost) { return cost > kQuickCost ? Pace::slow : Pace::quick; }

void lower_priority(int nice) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice);
}

double answer_values(const ForecastOptions& options, double num_variates) {
  double a_step = 3 + static_cast<double>(options.quantiles.size());  // mean, median, point
  if (options.keep_samples) {
    a_step += options.num_samples > 0 ? options.num_samples : kDefaultPaths;
  }
  return a_step * options.horizon * num_variates;
}

io::EngineBlock ActiveEngine::block(std::uint64_t seed) const {
  return io::describe(*engine, name, seed);
}

std::int64_t ActiveEngine::replans() const {
  return former_replans + (engine ? engine->replans() : 0) + (twin ? twin->replans() : 0);
}

// A job and how far it has come, or a task.
struct Scheduler::Item {
  Job job;
  EngineTask task = {};
  std::size_t taken = 0;  // series of the job in earlier slices
  Answer answer = {};
};

bool Scheduler::unwanted(const Item& item) const {
  return cancel_all_ || (item.job.gone && item.job.gone->load()) ||
         Clock::now() >= item.job.deadline;
}

Error Scheduler::why_unwanted() const { return cancel_all_ ? shutdown_error() : deadline_error(); }

Scheduler::Scheduler(const SchedulerOptions& options, Load load, Mode mode, SchedulerEvents events)
    : options_(options), load_(std::move(load)), events_(std::move(events)) {
  switches_.push_back({.mode = mode, .done = events_.loaded});
  quick_.thread = std::thread([this] { run(quick_); });
  slow_.thread = std::thread([this] {
    lower_priority(kSlowPriority);
    run(slow_);
  });
  watch_thread_ = std::thread([this] { watch(); });
}

void Scheduler::submit(Job job) {
  auto item = std::make_shared<Item>();
  item->job = std::move(job);
  item->answer.forecasts.reserve(item->job.series.size());
  double cost = 0;
  for (const Series& series : item->job.series) {
    cost += cost_of_series(series, item->job.options, patch_size_);
  }
  add(std::move(item), pace_of(cost));
}

void Scheduler::submit(EngineTask task, Pace pace, ClientGone gone, Clock::time_point deadline,
                       Done done) {
  auto item = std::make_shared<Item>();
  item->job.gone = std::move(gone);
  item->job.deadline = deadline;
  item->job.done = std::move(done);
  item->task = std::move(task);
  add(std::move(item), pace);
}

void Scheduler::add(std::shared_ptr<Item> item, Pace pace) {
  Lane& lane = lane_of(pace);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || cancel_all_) throw shutdown_error();
    const std::size_t waiting = lane.queue.size() + lane.num_running;
    if (waiting >= options_.max_queued) {
      fail(ErrorCode::overloaded,
           "{} requests are waiting already, as many as --queue allows; try "
           "again",
           waiting);
    }
    enqueue(lane, std::move(item));
  }
  lane.wake.notify_one();
}

void Scheduler::enqueue(Lane& lane, std::shared_ptr<Item> item) {
  if (item->job.deadline < next_deadline_) wake_watch_.notify_one();
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
  quick_.wake.notify_one();
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
  for (Lane* lane : {&quick_, &slow_}) {
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

// Who waits is told in time that time is over, whatever the engine is busy with.
void Scheduler::watch() {
  std::unique_lock lock(mutex_);
  while (watched_) {
    std::vector<std::shared_ptr<Item>> late;
    std::vector<SwitchDone> given_up;
    const Clock::time_point now = Clock::now();
    next_deadline_ = Clock::time_point::max();
    for (Lane* lane : {&quick_, &slow_}) {
      std::erase_if(lane->queue, [&](const std::shared_ptr<Item>& item) {
        const bool is_late = cancel_all_ || now >= item->job.deadline;
        if (is_late) late.push_back(item);
        if (!is_late) next_deadline_ = std::min(next_deadline_, item->job.deadline);
        return is_late;
      });
    }
    if (cancel_all_) {
      for (Switch& wanted : switches_) given_up.push_back(std::move(wanted.done));
      switches_.clear();
      given_up.push_back(std::exchange(loading_, {}));
      std::erase_if(given_up, [](const SwitchDone& done) { return !done; });
    }
    if (!late.empty() || !given_up.empty()) {
      lock.unlock();
      for (const auto& item : late) finish(*item, why_unwanted());
      for (const SwitchDone& done : given_up) done(shutdown_error());
      late.clear();
      lock.lock();
    } else if (next_deadline_ == Clock::time_point::max()) {
      wake_watch_.wait(lock);
    } else {
      wake_watch_.wait_until(lock, next_deadline_);
    }
  }
}

ActiveEngine Scheduler::active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

std::size_t Scheduler::depth() const {
  const std::lock_guard lock(mutex_);
  return quick_.queue.size() + quick_.num_running + slow_.queue.size() + slow_.num_running;
}

// Engines are loaded on the quick thread; the slow one follows.
void Scheduler::run(Lane& lane) {
  const bool loads = &lane == &quick_;
  for (;;) {
    std::optional<Mode> wanted;
    std::vector<Slice> slices;
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
        follow(lane);
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

// At once, so that the former engine's memory is free while nothing is asked for.
void Scheduler::follow(Lane& lane) {
  lane.active = active_;
  lane.active.twin = {};
  if (&lane == &slow_) lane.active.engine = {};
  lane.num_forecasts = 0;
  lane.warm = false;
}

// On the thread that will use it: the threads of a twin inherit its priority.
const Engine& Scheduler::engine_of(Lane& lane) {
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
    std::swap(active_, next);  // the former one goes after the lock
    number_ = active_.number;
    patch_size_ = active_.engine->model().patch_size;
  } catch (const Error& what) {
    error = what;
  } catch (const std::bad_alloc&) {
    error = Error(ErrorCode::out_of_memory, "not enough memory to load the model");
  } catch (const std::exception& what) {
    error = Error(ErrorCode::internal, what.what());
  }
  SwitchDone done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(loading_, {});
    tried_ = true;
  }
  slow_.wake.notify_one();
  if (done) done(std::move(error));
}

// The oldest request, and with it all that can travel along. What is not finished goes to the end
// of the queue, so that a request of many series holds up the others for no longer than a turn. One
// series is not cut: that is why slow ones have a lane of their own.
std::vector<Scheduler::Slice> Scheduler::next_slices(Lane& lane) const {
  std::vector<Slice> slices;
  double cost = 0;
  std::size_t num_series = 0;
  std::deque<std::shared_ptr<Item>> later;
  while (!lane.queue.empty()) {
    std::shared_ptr<Item> item = std::move(lane.queue.front());
    lane.queue.pop_front();
    const bool first = slices.empty();
    const bool fits = first || (!item->task && !slices.front().item->task && cost < kTurnCost &&
                                num_series < options_.max_batch &&
                                same_forecast(slices.front().item->job.options, item->job.options));
    if (!fits) {
      later.push_back(std::move(item));
      continue;
    }
    Slice slice{.item = item};
    const std::vector<Series>& series = item->job.series;
    for (std::size_t i = item->taken; i < series.size(); ++i) {
      if (num_series > 0 && (cost >= kTurnCost || num_series >= options_.max_batch)) break;
      cost += cost_of_series(series[i], item->job.options, patch_size_);
      ++num_series;
      ++slice.count;
    }
    slices.push_back(std::move(slice));
  }
  lane.queue = std::move(later);
  return slices;
}

void Scheduler::run_task(Lane& lane, Item& item) {
  std::optional<Error> error;
  try {
    engine_of(lane);
    item.task(lane.active);
  } catch (const Error& what) {
    error = what.code() == ErrorCode::cancelled && unwanted(item) ? why_unwanted() : what;
  } catch (const std::exception& what) {
    error = Error(ErrorCode::internal, what.what());
  }
  finish(item, std::move(error));
}

void Scheduler::forecast(Lane& lane, std::vector<Slice> slices) {
  std::erase_if(slices, [this](const Slice& slice) {
    Item& item = *slice.item;
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
    if (cancelled && outdated(lane)) {  // once more, with the engine in use now
      const std::lock_guard lock(mutex_);
      for (Slice& slice : slices) enqueue(lane, std::move(slice.item));
      return;
    }
    if (slices.size() == 1) {
      return finish(*slices.front().item, cancelled ? why_unwanted() : error);
    }
    // One of them is wrong, or no longer wanted: each for itself, so that the others are answered.
    for (Slice& slice : slices) forecast(lane, {std::move(slice)});
    return;
  } catch (const std::exception& error) {
    for (const Slice& slice : slices) {
      finish(*slice.item, Error(ErrorCode::internal, error.what()));
    }
    return;
  }
  for (Slice& slice : slices) {
    Item& item = *slice.item;
    if (item.answer.forecasts.size() == item.job.series.size()) {
      finish(item, std::nullopt);
    } else {
      const std::lock_guard lock(mutex_);
      enqueue(lane, std::move(slice.item));
    }
  }
}

void Scheduler::forecast_slices(Lane& lane, const std::vector<Slice>& slices) {
  const Engine& engine = engine_of(lane);
  std::vector<Series>& batch = lane.batch;
  batch.clear();
  for (const Slice& slice : slices) {
    Item& item = *slice.item;
    for (std::size_t i = 0; i < slice.count; ++i) {
      batch.push_back(std::move(item.job.series[item.taken + i]));
    }
  }
  const auto give_back = [&] {
    std::size_t next = 0;
    for (const Slice& slice : slices) {
      for (std::size_t i = 0; i < slice.count; ++i) {
        slice.item->job.series[slice.item->taken + i] = std::move(batch[next++]);
      }
    }
  };
  ForecastOptions options = slices.front().item->job.options;
  options.cancelled = [this, &slices, &lane] {
    return outdated(lane) || std::all_of(slices.begin(), slices.end(), [this](const Slice& slice) {
             return unwanted(*slice.item);
           });
  };
  try {
    engine.forecast_into(batch, options, lane.answers);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  if (events_.batch) events_.batch(batch.size());
  count_forecasts(lane.active, static_cast<std::int64_t>(batch.size()));
  const Timings timings = engine.timings();
  const io::EngineBlock block = lane.active.block(options.seed);
  std::size_t next = 0;
  for (const Slice& slice : slices) {
    Item& item = *slice.item;
    for (std::size_t i = 0; i < slice.count; ++i, ++next) {
      if (events_.forecast) {
        events_.forecast(item.job.series[item.taken + i], item.job.options, lane.answers[next],
                         lane.active);
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

void Scheduler::count_forecasts(const ActiveEngine& active, std::int64_t count) {
  Lane& lane = &active == &slow_.active ? slow_ : quick_;
  lane.num_forecasts += count;
  if (lane.warm || lane.num_forecasts < options_.warm_up) return;
  active.engine->finish_warm_up();
  lane.warm = true;
}

void Scheduler::finish(Item& item, std::optional<Error> error) {
  if (!item.job.done) return;
  const Done done = std::exchange(item.job.done, {});
  item.job.series = {};  // what they took is free when the answer is there
  done(std::move(error), std::move(item.answer));
}

}  // namespace toto::server
