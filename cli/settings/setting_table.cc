#include "cli/settings/setting_table.h"

#include <unistd.h>

#include <algorithm>

#include "backtest/backtest_spec.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "server/serve_settings.h"
#include "settings/engine_settings.h"
#include "settings/forecast_settings.h"

namespace toto::cli {
namespace {

using settings::Setting;

// Read without a setting: the service's config file.
constexpr std::string_view kOtherVariables[] = {"TOTO_SERVE_CONFIG"};

std::vector<const Setting*> collect() {
  std::vector<const Setting*> all;
  const auto add = [&](const auto& fields) {
    for (const Setting& setting : fields) {
      if ((setting.doors & settings::kFile) != 0) all.push_back(&setting);
    }
  };
  add(settings::engine_fields());
  add(settings::forecast_fields());
  add(backtest::spec_fields());
  add(server::serve_fields());
  return all;
}

}  // namespace

std::span<const Setting* const> all_settings() {
  static const std::vector<const Setting*> all = collect();
  return all;
}

const Setting* find_setting(std::string_view name) {
  std::string key(name);
  std::ranges::replace(key, '_', '-');
  const auto found = std::ranges::find_if(all_settings(), [&](const Setting* setting) {
    return setting->key() == key || std::ranges::count(setting->variables, name) > 0;
  });
  return found == all_settings().end() ? nullptr : *found;
}

std::vector<std::string> all_variables() {
  std::vector<std::string> names(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const Setting* setting : all_settings()) {
    names.insert(names.end(), setting->variables.begin(), setting->variables.end());
  }
  for (const Setting& setting : settings::engine_fields()) {
    if ((setting.doors & settings::kFlag) != 0)
      names.push_back(settings::service_variable(setting.name));
  }
  return names;
}

std::vector<std::string> remarks_on_variables() {
  const std::vector<std::string> known = all_variables();
  const std::vector<std::string_view> views(known.begin(), known.end());
  std::vector<std::string> remarks;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    // An empty variable is not set.
    if (equals == std::string_view::npos || equals + 1 == text.size()) continue;
    const std::string_view name = text.substr(0, equals);
    if (!name.starts_with("TOTO_") || std::ranges::count(views, name) > 0) continue;
    remarks.push_back(fmt::format("the variable {} is set, but no setting has this name{}",
                                  quoted(name), did_you_mean(name, views)));
  }
  std::ranges::sort(remarks);
  return remarks;
}

}  // namespace toto::cli
