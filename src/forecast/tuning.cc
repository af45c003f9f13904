#include "forecast/tuning.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/machine.h"
#include "cache/text_entry.h"
#include "kernels/kernels.h"

namespace toto {
namespace {

constexpr const char* kNames[] = {"qkv", "out", "gate_up", "down", "head"};
constexpr int kMost = 1 << 24;  // rows and tasks beyond it are nothing this program wrote

// Everything that decides which schedule is fastest. The weights' values do not.
std::string key_of(const Network& network, const EngineOptions& options) {
  return fmt::format("toto {}\nCPU {}\nisa {}\ndtype {}\nthreads {}\n{}", version(), cpu_name(),
                     kernels_for(options.isa).name, name_of(options.dtype), options.threads,
                     network.schedule_key());
}

std::string written(const Schedules& schedules) {
  std::string text;
  for (const Schedules::Entry& entry : schedules.entries()) {
    text += fmt::format("{} {} {} {}\n", kNames[static_cast<int>(entry.product)], entry.rows,
                        entry.schedule.column_tasks, entry.schedule.rows_per_task);
  }
  return text;
}

// False if the text is not what written() writes.
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
    : tuner_(network, pool), key_(key_of(network, options)), log_(options.on_plan) {
  network.use(schedules_);
  if (folder.empty() || network.products().empty()) return;
  // One file for each setting: what differs otherwise (another CPU, another version) replaces it.
  path_ = fmt::format("{}/schedules/{}-{}-{}.txt", folder, network.schedule_name(),
                      name_of(options.dtype), options.threads);
  cache::TextEntry entry = cache::read_text_entry(path_, key_);
  invalid_ = std::move(entry.invalid);
  if (entry.text && !read(*entry.text, schedules_)) {
    schedules_ = {};
    invalid_ = path_ + ": its lines are not what this version writes";
  }
}

void Tuning::prepare(int rows, int outputs, const Workspace& workspace) {
  measured_ += tuner_.tune(rows, outputs, workspace, schedules_);
}

void Tuning::keep() {
  if (measured_ == 0) return;
  std::string place = path_.empty() ? "without a cache" : path_;
  try {
    if (!path_.empty()) cache::write_text_entry(path_, key_, written(schedules_));
  } catch (const Error& error) {
    place = fmt::format("not kept: {}", error.what());
  }
  if (log_) log_(fmt::format("schedules: {} products measured, {}", measured_, place));
  measured_ = 0;
}

std::string Tuning::take_invalid() { return std::exchange(invalid_, {}); }

}  // namespace toto
