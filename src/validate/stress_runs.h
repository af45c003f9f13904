// `toto stress`: every mode under a mixed load, for longer than a test: other shapes all the time,
// several callers at once, cancelled and repeated calls, models loaded again. Judged by accuracy on
// held-out values, latency, memory and replans; what could not be measured has not passed.
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
#include "validate/latency.h"
#include "validate/runner.h"
#include "validate/verify.h"

namespace toto::validate {

enum class StressLevel { quick, full, production_check };
std::string_view name_of(StressLevel level) noexcept;
StressLevel parse_stress_level(std::string_view name);  // Error(invalid_argument) lists the levels
int iterations_of(StressLevel level) noexcept;          // 3, 10, 20

struct StressOptions {
  std::string model;  // a model folder
  StressLevel level = StressLevel::quick;
  std::vector<Symbol> symbols;
  EngineOptions engine;  // all but the mode; `reference` always has float32 weights
  std::uint64_t seed = 0;
  // The largest of the mixed shapes, and how many threads call one engine at once.
  int max_context = 8192;
  int max_variates = 32;
  int callers = 4;
  Loader load = load_runner;
  std::function<std::optional<std::uint64_t>()> resident = resident_bytes;
  std::function<std::optional<std::uint64_t>()> heap = heap_bytes;
  std::function<bool()> cancelled;  // asked between steps, by several threads; true ends the run
  std::function<void(int done, int total)> progress;  // steps
};

// One mode in one iteration.
struct StressRow {
  Mode mode = Mode::reference;
  int iteration = 0;
  Accuracy accuracy;                 // over the windows of all symbols
  std::vector<double> milliseconds;  // of the forecast of each window
  std::uint64_t digest = 0;          // of every bit of these forecasts
  std::optional<double> peak_memory_mb;
  std::int64_t replans = 0;
  std::optional<std::uint64_t> resident, heap;  // after it, in bytes
  std::string complaint;                        // why there are no figures

  bool complete() const;  // every figure is there and finite
};

struct StressReport : JudgedReport {
  StressLevel level = StressLevel::quick;
  int callers = 0;
  std::size_t num_requests = 0;  // shapes, each repeated in every iteration
  std::vector<std::string> symbols;
  std::vector<StressRow> rows;                // by mode, then by iteration
  std::map<Mode, Latency> latency;            // of the windows' forecasts, one at a time
  std::map<Mode, Latency> mixed, concurrent;  // of all shapes alone; of the light ones by callers
  double mae_persistence = 0;                 // on the same windows
  std::vector<std::string> weights;  // where they came from: packed, mapped, a cache refused
};

// A mode that fails at something fails its checks; a model or data that cannot be used at all is an
// Error.
StressReport stress(const StressOptions& options);

std::string json_text(const StressReport& report);
std::string markdown_text(const StressReport& report);
std::string table_text(const StressReport& report);  // for a terminal

}  // namespace toto::validate
