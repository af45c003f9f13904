// Every setting of the config file and of variables, from all tables: the one list that the
// environment, the config file, `toto config` and the errors about them share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings/setting.h"

namespace toto::cli {

// Of the engine, forecasts, backtests and the service, in this order.
std::span<const settings::Setting* const> all_settings();

// By a key, where '_' counts as '-', or a variable; null if it is neither.
const settings::Setting* find_setting(std::string_view name);

// Also those of the engine's settings for the service alone, such as TOTO_SERVE_DTYPE.
std::vector<std::string> all_variables();

// A sentence for each TOTO_* variable that is set and that nothing reads, with the nearest name.
// Sorted.
std::vector<std::string> remarks_on_variables();

}  // namespace toto::cli
