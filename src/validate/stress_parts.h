// What a stress run leaves behind, between running and judging.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validate/network.h"
#include "validate/stress_runs.h"

namespace toto::validate {

// Something counted that should not have happened, and the first time it did.
struct Mishaps {
  std::size_t count = 0;
  std::size_t tried = 0;
  std::string first;

  void add(std::size_t some, std::string what) {
    if (count == 0 && some > 0) first = std::move(what);
    count += some;
  }
};

// The answer to one request: its bits, and the values that are compared with `reference`.
struct Answer {
  std::vector<std::uint32_t> bits;
  std::vector<double> values;
  std::string complaint;  // why there is none
};

// One mode.
struct ModeRecord {
  std::string complaint;  // why there is nothing more
  std::vector<StressRow> rows;
  std::vector<Accuracy> by_symbol;  // over all iterations
  std::vector<Answer> answers;      // by request; empty where this mode was not asked
  Mishaps differing;                // numbers unlike the first answer to the same request
  Mishaps not_cancelled;            // calls that went on though they were told to stop
  // Milliseconds of every call after the warm-up: of the mixed shapes one after the other, and of
  // those that callers made at once.
  std::vector<double> mixed, concurrent;
  Probe probe;
};

// Everything that was run, `reference` among it.
struct StressRun {
  std::vector<std::string> symbols;
  std::vector<bool> flat;             // by symbol: it never moves, and neither need its forecasts
  std::vector<std::string> requests;  // in words
  std::map<Mode, ModeRecord> modes;
};

void judge_stress(const StressOptions& options, const StressRun& run, StressReport& report);

}  // namespace toto::validate
