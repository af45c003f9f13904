// The tables of settings: names, checks and their messages, and the documents that quote them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "backtest/backtest_spec.h"
#include "base/assignment.h"
#include "server/serve_settings.h"
#include "settings/engine_settings.h"
#include "settings/forecast_settings.h"

namespace toto::settings {
namespace {

std::vector<const Setting*> every_setting() {
  std::vector<const Setting*> all;
  const auto add = [&](const auto& fields) {
    for (const Setting& setting : fields) all.push_back(&setting);
  };
  add(engine_fields());
  add(forecast_fields());
  add(backtest::spec_fields());
  add(server::serve_fields());
  return all;
}

std::string contents_of(const std::string& path) {
  std::ifstream file(TOTO_SOURCE_DIR "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string message_of(const Setting& setting, const Given& given) {
  try {
    checked(setting, given);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Given text(std::string_view value) { return {.value = io::json_text(value), .origin = "--x"}; }

TEST(SettingsTable, NamesFollowFromTheRow) {
  const auto& plans = *find(engine_fields(), "plan_cache_size");
  EXPECT_EQ(plans.key(), "plan-cache-size");
  EXPECT_EQ(plans.flag(), "--plan-cache-size");
  EXPECT_EQ(plans.default_text(), "256");
  const auto& body = *find(server::serve_fields(), "max_body");
  EXPECT_EQ(body.key(), "serve-max-body");
  EXPECT_EQ(body.flag(), "--max-body");
  EXPECT_EQ(body.variables, std::vector<std::string>{"TOTO_SERVE_MAX_BODY"});
  EXPECT_EQ(body.default_text(), "256M");
  EXPECT_EQ(find(backtest::spec_fields(), "lag_test")->flag(), "--no-lag-test");
}

// Batches and cached forecasts are shared by options with equal keys.
TEST(SettingsTable, EveryForecastOptionIsPartOfTheKey) {
  using Change = void (*)(ForecastOptions&);
  const Change changes[] = {
      [](ForecastOptions& o) { o.horizon = 65; },
      [](ForecastOptions& o) { o.quantiles.back() = 0.91; },
      [](ForecastOptions& o) { o.max_context = 4095; },
      [](ForecastOptions& o) { o.num_samples = 7; },
      [](ForecastOptions& o) { o.decode = Decode::mean; },
      [](ForecastOptions& o) { o.missing = Missing::mask; },
      [](ForecastOptions& o) { o.point = {Point::Kind::quantile, 0.25}; },
      [](ForecastOptions& o) { o.point = {Point::Kind::quantile_plus_std, 0.25, 0.5}; },
      [](ForecastOptions& o) { o.num_paths = 7; },
      [](ForecastOptions& o) { o.scale = 2; },
      [](ForecastOptions& o) { o.seed = std::uint64_t{1} << 63; },
      [](ForecastOptions& o) { o.independent_streams = true; },
      [](ForecastOptions& o) { o.keep_samples = true; },
  };
  std::set<std::string> keys = {forecast_key({})};
  EXPECT_EQ(forecast_key({}), *keys.begin());
  for (const Change& change : changes) {
    ForecastOptions options;
    change(options);
    EXPECT_TRUE(keys.insert(forecast_key(options)).second) << forecast_key(options);
  }
}

TEST(SettingsTable, KeysAndVariablesAreUnique) {
  std::set<std::string> names;
  for (const Setting* setting : every_setting()) {
    if ((setting->doors & kFile) == 0) continue;
    EXPECT_TRUE(names.insert(setting->key()).second) << setting->key();
    EXPECT_FALSE(setting->help.empty()) << setting->key();
    for (const std::string& variable : setting->variables) {
      EXPECT_TRUE(names.insert(variable).second) << variable;
    }
  }
}

TEST(SettingsTable, OneMessageForEachKindOfValue) {
  const auto& horizon = *find(forecast_fields(), "horizon");
  for (const char* wrong : {"0", "100001", "010x", "0x10", "1.5", "-1", ""}) {
    EXPECT_EQ(message_of(horizon, text(wrong)),
              fmt::format("--x is \"{}\", expected a whole number from 1 to 100000", wrong));
  }
  EXPECT_EQ(checked(horizon, text("010")).integer, 10);
  Given typed = text("5");
  typed.typed = true;
  EXPECT_EQ(message_of(horizon, typed), "--x is \"5\", expected a whole number from 1 to 100000");
  EXPECT_EQ(message_of(*find(engine_fields(), "no_cache"), text("maybe")),
            "--x is \"maybe\", expected 1 or 0");
  EXPECT_EQ(message_of(*find(forecast_fields(), "quantiles"), text("0.5,1")),
            "--x holds \"1\", expected levels strictly between 0 and 1, such as 0.1,0.5,0.9");
  EXPECT_EQ(message_of(*find(server::serve_fields(), "max_body"), text("1T")),
            "--x is \"1T\", expected 1024 to 17179869184 bytes, such as 64K, 256M or 1G");
  EXPECT_EQ(checked(*find(server::serve_fields(), "max_body"), text("2G")).integer, 2ll << 30);
  EXPECT_EQ(message_of(*find(server::serve_fields(), "host"), text("nowhere.example")),
            "--x is \"nowhere.example\", expected an address such as 127.0.0.1 or ::");
}

// Default by default: what a fresh target holds is what the row says.
TEST(SettingsTable, DefaultsAreThoseOfTheStructs) {
  EXPECT_EQ(find(forecast_fields(), "context")->standard.integer, ForecastOptions().max_context);
  EXPECT_EQ(find(backtest::spec_fields(), "context")->standard.integer,
            ForecastOptions().max_context);
  EXPECT_EQ(find(server::serve_fields(), "port")->standard.integer, server::HttpOptions().port);
}

// /v1 requests have the options of the table, with its defaults and limits.
TEST(SettingsTable, OpenApiHasTheOptions) {
  const io::Json document = io::parse_json(contents_of("server/openapi.json"), "openapi.json");
  const io::Json& schemas = *document.find("components")->find("schemas");
  for (const char* name : {"ForecastRequest", "ForecastOptions", "Append"}) {
    const io::Json& properties = *schemas.find(name)->find("properties");
    for (const ForecastField& row : forecast_fields()) {
      if ((row.doors & kHttp) == 0) continue;
      const io::Json* property = properties.find(row.name);
      ASSERT_NE(property, nullptr) << name << "." << row.name;
      if (row.name == "seed" || row.type != Type::whole) continue;
      EXPECT_EQ(property->find("minimum")->integer, row.low) << name << "." << row.name;
      if (const io::Json* most = property->find("maximum")) {
        EXPECT_EQ(most->real, row.high) << name << "." << row.name;
      }
      if (const io::Json* standard = property->find("default")) {
        EXPECT_EQ(standard->integer, row.standard.integer) << name << "." << row.name;
      }
    }
  }
}

// The page offers the defaults of the table.
TEST(SettingsTable, ThePageHasTheDefaults) {
  const int context = ForecastOptions().max_context;
  EXPECT_NE(contents_of("server/web/index.html")
                .find(fmt::format(
                    "id=\"context\" type=\"number\" inputmode=\"numeric\" value=\"{}\"", context)),
            std::string::npos);
  EXPECT_NE(contents_of("server/web/forecast.js").find(fmt::format("kContext = {};", context)),
            std::string::npos);
}

// docs/settings.md lists every setting as the table has it.
TEST(SettingsTable, TheDocumentIsTheTable) {
  std::string expected = "| key | variable | flag | meaning | default |\n|---|---|---|---|---|\n";
  for (const Setting* setting : every_setting()) {
    if ((setting->doors & kFile) == 0) continue;
    std::vector<std::string> variables;
    for (const std::string& name : setting->variables) variables.push_back("`" + name + "`");
    expected +=
        fmt::format("| `{}` | {} | {} | {} | {} |\n", setting->key(), fmt::join(variables, ", "),
                    (setting->doors & kFlag) != 0 ? "`" + setting->flag() + "`" : "", setting->help,
                    setting->default_text());
  }
  EXPECT_NE(contents_of("docs/settings.md").find(expected), std::string::npos)
      << "docs/settings.md lacks this table:\n"
      << expected;
}

TEST(Assignment, ReadsConfigFilesAndShellLines) {
  const auto value_of = [](std::string_view line) {
    const auto found = parse_assignment(line);
    return found ? fmt::format("{}={}", found->name, found->value) : std::string("none");
  };
  EXPECT_EQ(value_of("  seed = 5   # lucky\r"), "seed=5");
  EXPECT_EQ(value_of("export TOTO_THREADS=\"1\" # cores"), "TOTO_THREADS=1");
  EXPECT_EQ(value_of("name = 'a # b'"), "name=a # b");
  EXPECT_EQ(value_of("a=b#c"), "a=b#c");
  EXPECT_EQ(value_of("seed = # none"), "seed=");
  for (const char* none : {"", "  ", "# seed = 1", "seed 1"}) EXPECT_EQ(value_of(none), "none");
  EXPECT_FALSE(parse_assignment("a = \"b")->well_quoted);
  EXPECT_FALSE(parse_assignment("a = \"b\" c")->well_quoted);
  EXPECT_TRUE(parse_assignment("a = b")->has_blanks);
  EXPECT_FALSE(parse_assignment("export a=b")->has_blanks);
  const auto lines = lines_of(
      "\xEF\xBB\xBF"
      "a\n\nb");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "a");
  EXPECT_EQ(lines[2].number, 3u);
}

}  // namespace
}  // namespace toto::settings
