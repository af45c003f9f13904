#include "backtest_settings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "io/atomic_file.h"
#include "io/csv.h"

namespace toto::cli {
namespace {

using io::Json;

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

struct NamedFlag {
  std::string_view name;
  std::optional<std::string>* value;
  std::vector<const char*> variables = {};  // that say the same
};
struct NamedSwitch {
  std::string_view name;
  bool* value;
  bool negated;  // the setting is true where the flag is not given
};

std::vector<NamedFlag> named_flags(BacktestFlags& flags) {
  return {{"windows", &flags.windows},
          {"from", &flags.from},
          {"to", &flags.to},
          {"decision_lag", &flags.decision_lag},
          {"context", &flags.context},
          {"transform", &flags.transform},
          {"return_scale", &flags.return_scale},
          {"point", &flags.point, {"TOTO_AGGREGATION_SPEC"}},
          {"samples", &flags.samples, {"TOTO_NUM_SAMPLES"}},
          {"asset", &flags.asset},
          {"bars_per_year", &flags.bars_per_year},
          {"strategies", &flags.strategies},
          {"ci_multiplier", &flags.ci_multiplier},
          {"fill", &flags.fill},
          {"fee_bps", &flags.fee_bps},
          {"slippage_bps", &flags.slippage_bps},
          {"borrow_apr", &flags.borrow_apr},
          {"model", &flags.common.model, {"TOTO_MODEL_ID"}},
          {"mode",
           &flags.common.mode,
           {"TOTO_DISABLE_COMPILE", "TOTO_COMPILE", "TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"}},
          {"dtype", &flags.common.dtype, {"TOTO_DTYPE"}},
          {"isa", &flags.common.isa, {"TOTO_ISA"}},
          {"threads", &flags.common.threads, {"TOTO_THREADS"}},
          {"seed", &flags.common.seed, {"TOTO_SEED"}}};
}

std::vector<NamedSwitch> named_switches(BacktestFlags& flags) {
  return {{"tune_offsets", &flags.tune_offsets, false},
          {"prove_no_lookahead", &flags.prove_no_lookahead, false},
          {"lag_test", &flags.no_lag_test, true},
          {"no_kv_cache", &flags.common.no_kv_cache, false}};
}

template <typename Named>
auto find_name(const std::vector<Named>& items, std::string_view name) {
  return std::find_if(items.begin(), items.end(),
                      [&](const Named& item) { return item.name == name; });
}

bool any_is_set(const std::vector<const char*>& variables) {
  return std::any_of(variables.begin(), variables.end(), [](const char* variable) {
    return find_choice({}, {}, {variable}).has_value();
  });
}

std::vector<std::string> strings_of(const Json& value, const std::string& where) {
  if (value.kind == Json::Kind::string) return list_of({value.string, where});
  if (value.kind != Json::Kind::array) {
    fail(ErrorCode::corrupt_file, "{} is {}, expected a list", where, io::described(value));
  }
  std::vector<std::string> items;
  for (const Json& item : value.array) {
    if (item.kind != Json::Kind::string) {
      fail(ErrorCode::corrupt_file, "{} holds {}, expected text", where, io::described(item));
    }
    items.push_back(item.string);
  }
  return items;
}

// A value of the file as it would stand on the command line.
std::string as_flag(const Json& value, const std::string& where) {
  switch (value.kind) {
    case Json::Kind::string:
      return value.string;
    case Json::Kind::integer:
      return fmt::format("{}", value.integer);
    case Json::Kind::real:
      return fmt::format("{}", value.real);
    case Json::Kind::array:
      return fmt::format("{}", fmt::join(strings_of(value, where), ","));
    default:
      fail(ErrorCode::corrupt_file, "{} is {}, expected a number or text", where,
           io::described(value));
  }
}

bool as_switch(const Json& value, const std::string& where) {
  if (value.kind == Json::Kind::boolean) return value.boolean;
  if (value.kind == Json::Kind::string && value.string == "true") return true;
  if (value.kind == Json::Kind::string && value.string == "false") return false;
  fail(ErrorCode::corrupt_file, "{} is {}, expected true or false", where, io::described(value));
}

}  // namespace

std::vector<SettingsFiles::Setting> SettingsFiles::read_lines(const std::string& text,
                                                              const std::string& path) {
  std::vector<Setting> settings;
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    std::string_view line = io::trimmed(rest.substr(0, end));
    if (line.ends_with('\r')) line = io::trimmed(line.substr(0, line.size() - 1));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}: line {}", path, number);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      fail(ErrorCode::corrupt_file, "{}: {} has no \"=\", expected name = value", where,
           io::quoted(line));
    }
    Setting setting{std::string(io::trimmed(line.substr(0, equals))), {}, where};
    const auto before = std::find_if(settings.begin(), settings.end(), [&](const Setting& item) {
      return item.name == setting.name;
    });
    if (before != settings.end()) {
      fail(ErrorCode::corrupt_file, "{}: {} stands there a second time, expected once", where,
           io::quoted(setting.name));
    }
    setting.value.kind = Json::Kind::string;
    setting.value.string = io::trimmed(line.substr(equals + 1));
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<SettingsFiles::Setting> SettingsFiles::members_of(const Json& object,
                                                              const std::string& path) {
  std::vector<Setting> settings;
  settings.reserve(object.object.size());
  for (const auto& [name, value] : object.object) settings.push_back({name, value, path});
  return settings;
}

void SettingsFiles::take_config(BacktestFlags& flags, const std::string& path) {
  const std::string text = io::read_file(path, kMaxBytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') {
    return take(flags, read_lines(text, path), true);
  }
  const Json json = io::parse_json(text, path);
  const Json* settings = json.find("settings");
  const bool wrapped = settings != nullptr && settings->kind == Json::Kind::object;
  take(flags, members_of(wrapped ? *settings : json, path), true);
}

void SettingsFiles::take_results(BacktestFlags& flags, const std::string& path) {
  const Json results = io::parse_json(io::read_file(path, kMaxBytes), path);
  const Json* settings = results.find("settings");
  if (settings == nullptr || settings->kind != Json::Kind::object) {
    fail(ErrorCode::corrupt_file,
         "{}: has no \"settings\" object, expected the results.json of a backtest", path);
  }
  if (flags.data.empty()) earlier_data_ = backtest::read_data_files(results, path);
  take(flags, members_of(*settings, path), false);
}

void SettingsFiles::take_request(BacktestFlags& flags, const Json& settings) {
  take(flags, members_of(settings, "settings"), false);
}

void SettingsFiles::take(BacktestFlags& flags, const std::vector<Setting>& settings,
                         bool variables_win) {
  const bool new_period = flags.windows || flags.from || flags.to;
  const auto named = named_flags(flags);
  const auto switches = named_switches(flags);
  for (const auto& [name, value, file] : settings) {
    const std::string where = fmt::format("{}: the setting {}", file, io::quoted(name));
    if (name == "data") {
      if (flags.data.empty()) flags.data = strings_of(value, where);
      continue;
    }
    if (const auto flag = find_name(named, name); flag != named.end()) {
      const bool of_period = name == "windows" || name == "from" || name == "to";
      if (value.kind == Json::Kind::null || *flag->value || (of_period && new_period)) continue;
      if (variables_win && any_is_set(flag->variables)) continue;
      *flag->value = as_flag(value, where);
      std::string spelling = "--" + name;
      std::replace(spelling.begin(), spelling.end(), '_', '-');
      taken_.push_back({std::move(spelling), name, file});
      continue;
    }
    const auto toggle = find_name(switches, name);
    if (toggle == switches.end()) {
      std::vector<std::string_view> names = {"data"};
      for (const NamedFlag& item : named) names.push_back(item.name);
      for (const NamedSwitch& item : switches) names.push_back(item.name);
      fail(ErrorCode::corrupt_file, "{}: there is no setting {}{}", file, io::quoted(name),
           did_you_mean(name, names));
    }
    *toggle->value |= as_switch(value, where) != toggle->negated;
  }
}

void SettingsFiles::explain(const Error& error) const {
  const std::string_view message = error.what();
  for (const Taken& item : taken_) {
    if (!message.starts_with(item.flag)) continue;
    const std::string_view rest = message.substr(item.flag.size());
    if (!rest.starts_with(" ") && !rest.starts_with(":")) continue;
    fail(ErrorCode::corrupt_file, "{}: {}{}", item.where, item.name, rest);
  }
}

}  // namespace toto::cli
