// The production check as a function, for `toto stress` and `toto config test`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/settings/settings.h"
#include "validate/stress_runs.h"

namespace toto::cli {

struct StressOptions {
  validate::StressLevel level = validate::StressLevel::quick;
  std::string output_dir = ".";  // gets compile_stress_results_MODE.json and ..._report_MODE.md
  std::vector<std::string> data = {};  // empty: the five symbols that come with the command
  std::string column = "close";
  std::optional<std::string> json = {};  // the same JSON; "-" is stdout
  bool progress = false;                 // also when stderr is not a terminal
  Flags settings = {};                   // the mode is ignored: every mode is run
};

// Runs every mode, writes both files, prints a table. 0 if every limit holds, 1 if one is broken.
int run_stress(const StressOptions& options);

}  // namespace toto::cli
