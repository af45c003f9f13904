#include "scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace toto::server {
namespace {

// What one turn of the engine may cost, in values read and paths' values drawn: some tens of
// milliseconds of the bundled model. Who asks for more gets more turns.
constexpr double kTurnCost = 1 << 20;

double cost_of(const Series& series, const ForecastOptions& options, int patch_size) {
  const double context =
      static_cast<double>(std::min<std::size_t>(series.length(), options.max_context));
  return series.num_variates * (context + num_paths(options, patch_size) * options.horizon);
}

bool same_forecast(const ForecastOptions& a, const ForecastOptions& b) {
  return a.horizon == b.horizon && a.quantiles == b.quantiles && a.max_context == b.max_context &&
         a.num_samples == b.num_samples && a.decode == b.decode && a.missing == b.missing &&
         a.point.kind == b.point.kind && a.point.a == b.point.a && a.point.b == b.point.b &&
         a.seed == b.seed && a.independent_streams == b.independent_streams &&
         a.keep_samples == b.keep_samples;
}

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
  return former_replans + (engine ? engine->replans() : 0);
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

Scheduler::Scheduler(const SchedulerOptions& options, Load load, Mode mode, SchedulerEvents events)
    : options_(options), load_(std::move(load)), events_(std::move(events)) {
  switches_.push_back({.mode = mode, .done = events_.loaded});
  thread_ = std::thread([this] { run(); });
  watch_thread_ = std::thread([this] { watch(); });
}

void Scheduler::submit(Job job) {
  auto item = std::make_shared<Item>();
  item->job = std::move(job);
  item->answer.forecasts.reserve(item->job.series.size());
  add(std::move(item));
}

void Scheduler::submit(EngineTask task, ClientGone gone, Clock::time_point deadline, Done done) {
  auto item = std::make_shared<Item>();
  item->job.gone = std::move(gone);
  item->job.deadline = deadline;
  item->job.done = std::move(done);
  item->task = std::move(task);
  add(std::move(item));
}

void Scheduler::add(std::shared_ptr<Item> item) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) fail(ErrorCode::cancelled, "the server is shutting down");
    if (queue_.size() + num_running_ >= options_.max_queued) {
      fail(ErrorCode::overloaded,
           "{} requests are waiting already, as many as --queue allows; try "
           "again",
           queue_.size() + num_running_);
    }
    enqueue(std::move(item));
  }
  wake_.notify_one();
}

void Scheduler::enqueue(std::shared_ptr<Item> item) {
  if (item->job.deadline < next_deadline_) wake_watch_.notify_one();
  queue_.push_back(std::move(item));
}

void Scheduler::switch_mode(Mode mode, std::function<void(std::optional<Error>)> done) {
  {
    const std::lock_guard lock(mutex_);
    switches_.push_back({mode, std::move(done)});
  }
  wake_.notify_one();
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard lock(mutex_);
    watched_ = false;
  }
  wake_watch_.notify_one();
  if (watch_thread_.joinable()) watch_thread_.join();
}

// Who waits in the queue is told in time that time is over, whatever the engine is busy with.
void Scheduler::watch() {
  std::unique_lock lock(mutex_);
  while (watched_) {
    std::vector<std::shared_ptr<Item>> late;
    const Clock::time_point now = Clock::now();
    next_deadline_ = Clock::time_point::max();
    std::erase_if(queue_, [&](const std::shared_ptr<Item>& item) {
      const bool is_late = now >= item->job.deadline;
      if (is_late) late.push_back(item);
      if (!is_late) next_deadline_ = std::min(next_deadline_, item->job.deadline);
      return is_late;
    });
    if (!late.empty()) {
      lock.unlock();
      for (const auto& item : late) finish(*item, deadline_error());
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
  return queue_.size() + num_running_;
}

void Scheduler::run() {
  for (;;) {
    std::optional<Switch> wanted;
    std::vector<Slice> slices;
    {
      std::unique_lock lock(mutex_);
      num_running_ = 0;
      wake_.wait(lock, [this] { return stopped_ || !switches_.empty() || !queue_.empty(); });
      if (!switches_.empty()) {
        wanted = std::move(switches_.front());
        switches_.pop_front();
      } else if (queue_.empty()) {
        return;  // stopped, and everything is answered
      } else {
        slices = next_slices();
        num_running_ = slices.size();
      }
    }
    if (wanted) {
      load(*wanted);
    } else {
      forecast(std::move(slices));
    }
  }
}

void Scheduler::load(const Switch& wanted) {
  std::optional<Error> error;
  try {
    auto engine = std::make_shared<const Engine>(load_(wanted.mode));
    std::string name = options_.model_name.empty() ? engine->model().name : options_.model_name;
    ActiveEngine next{std::move(engine), active_.number + 1, std::move(name)};
    warm_ = false;
    num_forecasts_ = 0;
    next.former_replans = active_.replans();
    const std::lock_guard lock(mutex_);
    std::swap(active_, next);  // the former one goes after the lock
  } catch (const Error& what) {
    error = what;
  } catch (const std::bad_alloc&) {
    error = Error(ErrorCode::out_of_memory, "not enough memory to load the model");
  } catch (const std::exception& what) {
    error = Error(ErrorCode::internal, what.what());
  }
  if (wanted.done) wanted.done(std::move(error));
}

// The oldest request, and with it all that can travel along. What is not finished goes to the end
// of the queue, so that no request holds up the others for longer than a turn.
std::vector<Scheduler::Slice> Scheduler::next_slices() {
  std::vector<Slice> slices;
  double cost = 0;
  std::size_t num_series = 0;
  const int patch_size = active_.engine ? active_.engine->model().patch_size : 1;
  std::deque<std::shared_ptr<Item>> later;
  while (!queue_.empty()) {
    std::shared_ptr<Item> item = std::move(queue_.front());
    queue_.pop_front();
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
      cost += cost_of(series[i], item->job.options, patch_size);
      ++num_series;
      ++slice.count;
    }
    slices.push_back(std::move(slice));
  }
  queue_ = std::move(later);
  return slices;
}

void Scheduler::forecast(std::vector<Slice> slices) {
  std::erase_if(slices, [this](const Slice& slice) {
    Item& item = *slice.item;
    if (!unwanted(item)) return false;
    finish(item, deadline_error());
    return true;
  });
  if (slices.empty()) return;
  if (slices.front().item->task) {
    Item& item = *slices.front().item;
    std::optional<Error> error;
    try {
      item.task(active_);
    } catch (const Error& what) {
      error = what.code() == ErrorCode::cancelled && unwanted(item) ? deadline_error() : what;
    } catch (const std::exception& what) {
      error = Error(ErrorCode::internal, what.what());
    }
    return finish(item, std::move(error));
  }
  try {
    forecast_slices(slices);
  } catch (const Error& error) {
    if (slices.size() == 1) {
      const bool late = error.code() == ErrorCode::cancelled;
      return finish(*slices.front().item, late ? deadline_error() : error);
    }
    // One of them is wrong, or no longer wanted: each for itself, so that the others are answered.
    for (Slice& slice : slices) forecast({std::move(slice)});
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
      enqueue(std::move(slice.item));
    }
  }
}

void Scheduler::forecast_slices(const std::vector<Slice>& slices) {
  if (!active_.engine) fail(ErrorCode::cancelled, "there is no engine");
  batch_.clear();
  for (const Slice& slice : slices) {
    Item& item = *slice.item;
    for (std::size_t i = 0; i < slice.count; ++i) {
      batch_.push_back(std::move(item.job.series[item.taken + i]));
    }
  }
  const auto give_back = [&] {
    std::size_t next = 0;
    for (const Slice& slice : slices) {
      for (std::size_t i = 0; i < slice.count; ++i) {
        slice.item->job.series[slice.item->taken + i] = std::move(batch_[next++]);
      }
    }
  };
  ForecastOptions options = slices.front().item->job.options;
  options.cancelled = [this, &slices] {
    return std::all_of(slices.begin(), slices.end(),
                       [this](const Slice& slice) { return unwanted(*slice.item); });
  };
  try {
    active_.engine->forecast_into(batch_, options, answers_);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  if (events_.batch) events_.batch(batch_.size());
  count_forecasts(static_cast<std::int64_t>(batch_.size()));
  const Timings timings = active_.engine->timings();
  const io::EngineBlock block = active_.block(options.seed);
  std::size_t next = 0;
  for (const Slice& slice : slices) {
    Item& item = *slice.item;
    for (std::size_t i = 0; i < slice.count; ++i, ++next) {
      if (events_.forecast) {
        events_.forecast(item.job.series[item.taken + i], item.job.options, answers_[next],
                         active_);
      }
      item.answer.forecasts.push_back(std::move(answers_[next]));
    }
    item.taken += slice.count;
    item.answer.engine = block;
    item.answer.timings.load = timings.load;
    item.answer.timings.prefill += timings.prefill;
    item.answer.timings.decode += timings.decode;
    item.answer.timings.total += timings.total;
  }
}

void Scheduler::count_forecasts(std::int64_t count) {
  num_forecasts_ += count;
  if (warm_ || num_forecasts_ < options_.warm_up) return;
  active_.engine->finish_warm_up();
  warm_ = true;
}

void Scheduler::finish(Item& item, std::optional<Error> error) {
  if (!item.job.done) return;
  const Done done = std::exchange(item.job.done, {});
  item.job.series = {};  // what they took is free when the answer is there
  done(std::move(error), std::move(item.answer));
}

}  // namespace toto::server
