#include "forecast/tuning.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/machine.h"
#include "cache/text_entry.h"
#include "kernels/kernels.h"

namespace toto {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr double kSeconds = 0.01;     // per measurement, if the model has enough layers
constexpr double kWorthwhile = 0.97;  // of the default's time: smaller gains are noise
constexpr int kTasksPerThread[] = {1, 2, 4, 16, 32};
constexpr int kRowsPerTask[] = {48, 96, 192, 384};

struct Candidate {
  Schedule schedule;
  double seconds = std::numeric_limits<double>::infinity();
};

constexpr const char* kNames[] = {"qkv", "out", "gate_up", "down", "head"};
constexpr int kMost = 1 << 24;  // more rows or tasks mean a damaged file

// Everything that affects which schedule is fastest. The values of the weights do not.
std::string key_of(const Network& network, const EngineOptions& options) {
  return fmt::format("toto {}\nCPU {}\nisa {}\ndtype {}\nthreads {}\n{}", version(), cpu_name(),
                     kernels_for(options.isa).name, name_of(options.dtype), options.threads,
                     network.schedule_key());
}

std::string written(const Schedules& schedules) {
  std::string text;
  for (const MeasuredSchedule& entry : schedules.entries()) {
    text += fmt::format("{} {} {} {}\n", kNames[static_cast<int>(entry.product)], entry.rows,
                        entry.schedule.column_tasks, entry.schedule.rows_per_task);
  }
  return text;
}

// False if the text was not produced by written().
bool read(const std::string& text, Schedules& schedules) {
  std::istringstream lines(text);
  const auto in_range = [](int number, int lowest) { return number >= lowest && number <= kMost; };
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int rows = 0, columns = 0, height = 0;
    if (!(words >> name >> rows >> columns >> height) || !(words >> std::ws).eof()) return false;
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames) || !in_range(rows, 1) || !in_range(columns, 0) ||
        !in_range(height, 0)) {
      return false;
    }
    schedules.add({static_cast<Product>(found - std::begin(kNames)), rows, {columns, height}});
  }
  return true;
}

}  // namespace

Tuning::Tuning(Network& network, const EngineOptions& options, ThreadPool& pool,
               const std::string& folder)
    : network_(network), pool_(pool), key_(key_of(network, options)), log_(options.on_plan) {
  network.use(schedules_);
  if (folder.empty() || network.products().empty()) return;
  // One file per model size, dtype and thread count; another CPU or version overwrites it.
  file_.emplace(folder, "schedules",
                fmt::format("{}-{}-{}.txt", network.schedule_name(), name_of(options.dtype),
                            options.threads));
  cache::TextEntry entry = cache::read_text_entry(*file_, key_);
  invalid_ = std::move(entry.invalid);
  if (entry.text && !read(*entry.text, schedules_)) {
    schedules_ = {};
    invalid_ = file_->path() + ": its lines are not what this version writes";
  }
}

// Candidates take turns, so that disturbances affect all of them; the best run of each counts. The
// default schedule comes first and is kept unless another is at least 3 % faster.
Schedule Tuning::fastest(Product product, int rows, const Workspace& workspace) const {
  const int all = product == Product::head ? 1 : network_.num_layers();
  // One layer after the other, as in a forward pass, so that weights come from memory, not caches.
  const auto measure = [&](const Schedule& schedule, int layers) {
    const Clock::time_point start = Clock::now();
    for (int layer = 0; layer < layers; ++layer) {
      network_.multiply(product, layer, rows, workspace, schedule);
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  measure({}, 1);  // warm-up: wakes the threads, loads the buffers
  int layers = 1;
  while (layers < all && measure({}, layers) < kSeconds) layers = std::min(all, layers * 2);

  const auto fastest_of = [&](std::vector<Candidate> candidates) {
    for (int round = 0; round < kRounds; ++round) {
      for (Candidate& candidate : candidates) {
        candidate.seconds = std::min(candidate.seconds, measure(candidate.schedule, layers));
      }
    }
    const auto best = std::min_element(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
    const bool clearly = best->seconds < kWorthwhile * candidates.front().seconds;
    return clearly ? best->schedule : candidates.front().schedule;
  };
  std::vector<Candidate> widths = {{.schedule = {}}, {.schedule = {.column_tasks = 1}}};
  for (const int tasks : kTasksPerThread) {
    if (tasks * pool_.num_threads() > 1)
      widths.push_back({.schedule = {.column_tasks = tasks * pool_.num_threads()}});
  }
  const Schedule width = fastest_of(std::move(widths));
  std::vector<Candidate> heights = {{.schedule = width}};
  for (const int height : kRowsPerTask) {
    if (height >= rows) break;
    heights.push_back({.schedule = {width.column_tasks, height}});
  }
  return heights.size() > 1 ? fastest_of(std::move(heights)) : width;
}

void Tuning::prepare(int rows, int outputs, const Workspace& workspace) {
  for (const Product product : network_.products()) {
    const int product_rows = product == Product::head ? outputs : rows;
    if (product_rows <= 0 || schedules_.has(product, product_rows)) continue;
    const Schedule schedule = fastest(product, product_rows, workspace);
    schedules_.add({product, size_class(product_rows), schedule});
    ++measured_;
  }
}

void Tuning::keep() {
  if (measured_ == 0) return;
  std::string place = file_ ? file_->path() : "without a cache";
  try {
    if (file_) cache::write_text_entry(*file_, key_, written(schedules_));
  } catch (const Error& error) {
    place = fmt::format("not kept: {}", error.what());
  }
  if (log_) log_(fmt::format("schedules: {} products measured, {}", measured_, place));
  measured_ = 0;
}

std::string Tuning::take_invalid() { return std::exchange(invalid_, {}); }

}  // namespace toto
