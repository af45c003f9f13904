// The checks of `toto doctor`. They change nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/settings/settings.h"

namespace toto::cli {

enum class Status { ok, warn, fail };

struct Check {
  std::string name = {};
  Status status = Status::ok;
  std::string value = {};
  std::string advice = {};  // empty when all is well
};

// The machine (doctor_machine.cc).
Check check_isa(const Settings& settings);
Check check_threads(const Settings& settings);
Check check_limits();
Check check_memory(const std::optional<LoadedEngine>& loaded);
Check check_clock();
Check check_temporary_folder();
Check check_cache_folder(const Settings& settings);

}  // namespace toto::cli
