#include "model/tuner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace toto {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr double kSeconds = 0.01;     // of one measurement, if the model has so many layers
constexpr double kWorthwhile = 0.97;  // of the usual time: smaller gains are noise
constexpr int kTasksPerThread[] = {1, 2, 4, 16, 32};
constexpr int kRowsPerTask[] = {48, 96, 192, 384};

struct Candidate {
  Schedule schedule;
  double seconds = std::numeric_limits<double>::infinity();
};

}  // namespace

// Candidates take turns, so that whatever disturbs the machine disturbs all of them; the best run
// of each counts. The usual schedule is the first and stays unless another is clearly faster.
Schedule Tuner::fastest(Product product, int rows, const Workspace& workspace) const {
  const int all = product == Product::head ? 1 : network_.num_layers();
  // Through one layer after the other, as a forward pass goes: the weights come from memory.
  const auto measure = [&](const Schedule& schedule, int layers) {
    const Clock::time_point start = Clock::now();
    for (int layer = 0; layer < layers; ++layer) {
      network_.multiply(product, layer, rows, workspace, schedule);
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  measure({}, 1);  // wakes the threads, brings in the buffers
  int layers = 1;
  while (layers < all && measure({}, layers) < kSeconds) layers = std::min(all, layers * 2);

  const auto race = [&](std::vector<Candidate> candidates) {
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
  const Schedule width = race(std::move(widths));
  std::vector<Candidate> heights = {{.schedule = width}};
  for (const int height : kRowsPerTask) {
    if (height >= rows) break;
    heights.push_back({.schedule = {width.column_tasks, height}});
  }
  return heights.size() > 1 ? race(std::move(heights)) : width;
}

int Tuner::tune(int rows, int outputs, const Workspace& workspace, Schedules& schedules) const {
  int measured = 0;
  for (const Product product : network_.products()) {
    const int product_rows = product == Product::head ? outputs : rows;
    if (product_rows <= 0 || schedules.has(product, product_rows)) continue;
    const Schedule schedule = fastest(product, product_rows, workspace);
    schedules.add({product, size_class(product_rows), schedule});
    ++measured;
  }
  return measured;
}

}  // namespace toto
