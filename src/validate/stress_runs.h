// `toto stress`: every mode under a mixed load, for longer than a test: changing shapes, concurrent
// callers, cancelled and repeated calls, reloaded models. Judged by accuracy on held-out values,
// latency, memory and replans; a figure that could not be measured fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_memory.h"
#include "validate/held_out.h"
#include "validate/judged_report.h"
#include "validate/latency.h"
#include "validate/runner.h"

namespace toto::validate {

enum class StressLevel { quick, full, production_check };
std::string_view name_of(StressLevel level) noexcept;
StressLevel parse_stress_level(std::string_view name);  // Error(invalid_argument) lists the levels
int iterations_of(StressLevel level) noexcept;          // 3, 10, 20

struct StressOptions {
  std::string model;  // a model folder
  StressLevel level = StressLevel::quick;
  std::vector<Symbol> symbols;
  EngineOptions engine;  // without the mode; `reference` always has float32 weights
  std::uint64_t seed = 0;
  // The largest of the mixed shapes, and the threads that call one engine concurrently.
  int max_context = 8192;
  int max_variates = 32;
  int callers = 4;
  Loader load = load_runner;
  std::function<std::optional<std::uint64_t>()> resident = resident_bytes;
  std::function<std::optional<std::uint64_t>()> heap = heap_bytes;
  std::function<bool()> cancelled;  // called between steps, by several threads; true ends the run
  std::function<void(int done, int total)> progress;  // steps
};

// One mode in one iteration.
struct StressRow {
  Mode mode = Mode::reference;
  int iteration = 0;
  Accuracy accuracy;                 // over the windows of all symbols
  std::vector<double> milliseconds;  // [window]
  std::uint64_t digest = 0;          // of all bits of these forecasts
  std::optional<double> peak_memory_mb;
  std::int64_t replans = 0;
  std::optional<std::uint64_t> resident, heap;  // bytes after the iteration
  std::string complaint;                        // why there are no figures

  bool complete() const;  // every figure was measured and is finite
};

struct StressReport : JudgedReport {
  StressLevel level = StressLevel::quick;
  int callers = 0;
  std::size_t num_requests = 0;  // shapes, all repeated in every iteration
  std::vector<std::string> symbols;
  std::vector<StressRow> rows;                // by mode, then by iteration
  std::map<Mode, Latency> latency;            // of the windows, one at a time
  std::map<Mode, Latency> mixed, concurrent;  // all shapes one at a time; small ones concurrently
  double mae_persistence = 0;                 // on the same windows
  std::vector<std::string> weights;  // their origin: packed, read, or why a cache was refused
};

// A mode that cannot run fails its checks; an unusable model or unusable data is an Error.
StressReport stress(const StressOptions& options);

std::string json_text(const StressReport& report);
std::string markdown_text(const StressReport& report);
std::string table_text(const StressReport& report);  // for a terminal

}  // namespace toto::validate
