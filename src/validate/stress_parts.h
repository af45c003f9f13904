// The results of a stress run, before they are judged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validate/network_probe.h"
#include "validate/stress_runs.h"

namespace toto::validate {

// Counts failures and describes the first one.
struct FailureCount {
  std::size_t count = 0;
  std::size_t tried = 0;
  std::string first;

  void add(std::size_t some, std::string what) {
    if (count == 0 && some > 0) first = std::move(what);
    count += some;
  }
};

// The answer to one request: its bits, and the values that are compared with `reference`.
struct StressAnswer {
  std::vector<std::uint32_t> bits;
  std::vector<double> values;
  std::string complaint;  // why there is no answer
};

// One mode.
struct ModeRecord {
  std::string complaint;  // why the mode failed; empty: it did not
  std::vector<StressRow> rows;
  std::vector<Accuracy> by_symbol;    // over all iterations
  std::vector<StressAnswer> answers;  // [request]; empty where this mode was not asked
  FailureCount differing;      // numbers that differ from the first answer to the same request
  FailureCount not_cancelled;  // calls that did not stop when cancelled
  // Milliseconds of every call after the warm-up: mixed shapes one at a time, and concurrent calls.
  std::vector<double> mixed, concurrent;
  NetworkProbe probe;
};

// All modes, `reference` included.
struct StressRun {
  std::vector<std::string> symbols;
  std::vector<bool> flat;  // [symbol]: all windows are equal, so equal forecasts are right
  std::vector<std::string> requests;  // descriptions
  std::map<Mode, ModeRecord> modes;
};

void judge_stress(const StressOptions& options, const StressRun& run, StressReport& report);

}  // namespace toto::validate
