// Modes side by side: healthy modes give the same bits, and each kind of broken one is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "golden_fixture.h"
#include "held_out_fixture.h"
#include "io/json.h"
#include "validate/mode_comparison.h"
#include "verify_fixture.h"

namespace toto::validate {
namespace {

// `reference` is slowed down: which mode is faster would otherwise be luck for forecasts of
// microseconds on a busy machine.
CompareOptions small_comparison(Fault fault = {}) {
  fault.on_forecast = [inner = fault.on_forecast](const EngineOptions& engine,
                                                  std::span<const Series> batch,
                                                  std::vector<Forecast>& forecasts) {
    if (engine.mode == Mode::reference) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    if (inner) inner(engine, batch, forecasts);
  };
  CompareOptions options;
  options.model = shared_model();
  options.symbols = two_symbols(100);
  options.context = 48;
  options.horizon = 2;
  options.samples = 8;
  options.runs = 4;
  options.engine.threads = 1;  // on a busy machine, threads that wait for each other take seconds
  options.load = faulty(std::move(fault));
  return options;
}

TEST(CompareModes, HealthyModesGiveTheSameBits) {
  const CompareReport report = compare_modes(small_comparison());
  EXPECT_TRUE(report.passed()) << table_text(report);
  EXPECT_EQ(failed_in(report), Names{}) << table_text(report);
  ASSERT_EQ(report.rows.size(), 8U);
  EXPECT_EQ(report.rows[0].symbol, "ONE");
  EXPECT_EQ(report.rows[4].symbol, "TWO");
  for (const CompareRow& row : report.rows) {
    EXPECT_EQ(row.milliseconds.size(), 4U);
    EXPECT_EQ(row.accuracy.count(), 8);
    EXPECT_EQ(row.differing_optimised, 0U);
    EXPECT_EQ(row.differing_reruns, 0U);
    EXPECT_EQ(row.replans, 0);
    EXPECT_GT(row.num_values, 0U);
    EXPECT_LT(row.deviation_mean, 1e-5 * row.size);
    EXPECT_GT(row.persistence.mae(), 0);
  }
  EXPECT_EQ(report.rows[0].deviation_max, 0) << "reference is as far from itself as that";
  EXPECT_EQ(report.rows[0].speedup, 1);
  const std::vector<std::string> findings = report.findings();
  ASSERT_FALSE(findings.empty());
  EXPECT_NE(findings[0].find("give the same bits"), std::string::npos) << findings[0];
}

// Equal windows, or a single one, do not count against the network.
TEST(CompareModes, AFlatSymbolAndASingleRunAreFine) {
  CompareOptions options = small_comparison();
  options.symbols = {{.name = "FLAT", .values = std::vector<float>(100, 7)}};
  for (const int runs : {4, 1}) {
    options.runs = runs;
    const Names names = failed_in(compare_modes(options));
    EXPECT_EQ(names, Names{}) << runs;
  }
}

// MAE computed a second time from the numbers of the row and from the file.
TEST(CompareModes, ComparesWithActualValues) {
  const CompareOptions options = small_comparison();
  const CompareReport report = compare_modes(options);
  const CompareRow& row = report.rows[1];
  const std::vector<float>& values = options.symbols[0].values;
  double error = 0, persistence = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const float actual = values[92 + i];
    EXPECT_EQ(row.actual[i], actual);
    error += std::abs(double{row.predicted[i]} - actual);
    persistence += std::abs(double{values[91 + i / 2 * 2]} - actual);
  }
  EXPECT_DOUBLE_EQ(row.accuracy.mae(), error / 8);
  EXPECT_DOUBLE_EQ(row.persistence.mae(), persistence / 8);
}

TEST(CompareModes, ZerosFromEveryModeAreCaught) {
  expect_zeros_caught(failed_in(compare_modes(small_comparison(zeroed()))));
}

// Only the forecasts are wrong, not the outputs of the network.
TEST(CompareModes, ForecastsNotBasedOnTheNetworkAreCaught) {
  const Fault fault{.on_forecast = [](const EngineOptions&, std::span<const Series> batch,
                                      std::vector<Forecast>& all) {
    const float latest = batch[0].values.back();  // differs from window to window
    change_numbers(all, [latest](float& x) { x = latest; });
  }};
  const CompareReport report = compare_modes(small_comparison(fault));
  EXPECT_TRUE(failed_in(report).contains("network/default"));
  EXPECT_NE(detail_of(report, "network/default").find("not the network's mean"), std::string::npos);
}

TEST(CompareModes, ANondeterministicModeIsCaught) {
  int calls = 0;
  const Fault fault{.on_forecast = [&calls](const EngineOptions& options, std::span<const Series>,
                                            std::vector<Forecast>& all) {
    if (!is(options, Mode::reduce_overhead) || all[0].samples.empty() || ++calls % 3 != 0) return;
    all[0].samples.back() = std::nextafter(all[0].samples.back(), INFINITY);
  }};
  const CompareReport report = compare_modes(small_comparison(fault));
  EXPECT_EQ(failed_in(report), (Names{"deterministic/reduce-overhead", "same-bits"}))
      << table_text(report);
  EXPECT_NE(report.findings()[0].find("expected none"), std::string::npos);
}

TEST(CompareModes, ASlowModeIsCaught) {
  const CompareReport report = compare_modes(small_comparison(slowed(Mode::max_autotune, 2)));
  EXPECT_EQ(failed_in(report), Names{"speed/max-autotune"}) << table_text(report);
  EXPECT_NE(detail_of(report, "speed/max-autotune").find("times the median time of reference"),
            std::string::npos);
}

TEST(CompareModes, AFailedModeIsNamedAndTheOthersAreReported) {
  CompareOptions options = small_comparison();
  options.load = [](const std::string& folder, const EngineOptions& engine) {
    if (is(engine, Mode::reduce_overhead)) throw Error(ErrorCode::unsupported, "not here");
    return load_runner(folder, engine);
  };
  const CompareReport report = compare_modes(options);
  EXPECT_EQ(failed_in(report), Names{"runs/reduce-overhead"});
  EXPECT_EQ(detail_of(report, "runs/reduce-overhead"), "not here");
  EXPECT_EQ(report.rows.size(), 6U);
}

TEST(CompareModes, ReplansAreCaught) {
  CompareOptions options = small_comparison();
  options.engine.plan_cache_size = 1;  // two symbols and one request each fit, sampled ones do too
  options.symbols[1].values.resize(60);  // another context length: another plan
  const CompareReport report = compare_modes(options);
  EXPECT_TRUE(failed_in(report).contains("replans/reduce-overhead")) << table_text(report);
}

// ------------------------------------------------------------------------------------- weights

// One mode, or all optimised ones, have other weights than the reference.
TEST(CompareModes, OtherWeightsAreCaught) {
  for (const WeightChange& change : weight_changes()) {
    SCOPED_TRACE(change.name);
    const testing::TemporaryFolder folder;
    const std::string other = folder / "other";
    std::filesystem::copy(shared_model(), other);
    TensorFile file(other + "/model.safetensors");
    change.change(file);
    file.save();
    for (const bool all : {false, true}) {
      CompareOptions options = small_comparison();
      options.symbols.resize(1);
      options.runs = 2;
      options.load = [&](const std::string& path, const EngineOptions& engine) {
        const bool changed = all ? engine.mode != Mode::reference : is(engine, Mode::standard);
        return load_runner(changed ? other : path, engine);
      };
      const Names names = failed_in(compare_modes(options));
      EXPECT_TRUE(names.contains("network/default"));
      EXPECT_EQ(names.contains("same-bits"), !all);
    }
  }
}

// -------------------------------------------------------------------------------------- refusals

TEST(CompareModes, RefusesWithoutTargets) {
  expect_refused_without_targets(small_comparison(), 35, compare_modes);
}

TEST(CompareModes, RefusesWhereLastTargetsAreMissing) {
  CompareOptions options = small_comparison();
  options.symbols[1].values.back() = NAN;
  ErrorCode code{};
  EXPECT_NE(testing::error_of([&] { (void)compare_modes(options); }, &code).find("\"TWO\""),
            std::string::npos);
  EXPECT_EQ(code, ErrorCode::corrupt_file);
  // An earlier window with a gap is skipped, with a warning.
  options = small_comparison();
  options.symbols[1].values[97] = NAN;
  const CompareReport report = compare_modes(options);
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_NE(report.warnings[0].find("TWO: 1 of the last 5 windows"), std::string::npos);
}

TEST(CompareModes, RefusesWithNothingToCompare) {
  CompareOptions options = small_comparison();
  options.modes = {Mode::reference};
  ErrorCode code{};
  EXPECT_NE(
      testing::error_of([&] { (void)compare_modes(options); }, &code).find("nothing to compare"),
      std::string::npos);
  EXPECT_EQ(code, ErrorCode::invalid_argument);
}

// Half of the calls of one mode take long; the median does not show it, the warning does.
TEST(CompareModes, ALongTailIsAWarning) {
  int calls = 0;
  CompareOptions options =
      small_comparison({.on_forecast = [&calls](const EngineOptions& engine,
                                                std::span<const Series>, std::vector<Forecast>&) {
        if (is(engine, Mode::standard) && ++calls % 4 == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
        }
      }});
  options.runs = 12;
  const CompareReport report = compare_modes(options);
  const auto told = [&](const std::string& text) {
    return text.find("default on ONE: p95 is") != std::string::npos;
  };
  EXPECT_TRUE(std::any_of(report.warnings.begin(), report.warnings.end(), told))
      << table_text(report);
  EXPECT_TRUE(told(json_text(report)) && told(markdown_text(report)) && told(page_html(report)));
}

TEST(CompareModes, CanBeCancelled) { expect_cancellable(small_comparison(), compare_modes); }

// --------------------------------------------------------------------------------------- reports

TEST(CompareReportText, EscapesHostileNames) {
  CompareOptions options = small_comparison();
  options.symbols.resize(1);
  options.symbols[0].name = "<script>|`x`\n\x1b[31m";
  options.modes = {Mode::standard};
  const CompareReport report = compare_modes(options);
  EXPECT_EQ(report.modes.size(), 2U) << "reference is always there";
  EXPECT_EQ(page_html(report).find("<script>|"), std::string::npos);
  EXPECT_EQ(markdown_text(report).find('<'), std::string::npos);
  for (const char c : table_text(report)) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  }
  const io::Json json = io::parse_json(json_text(report), "report");
  EXPECT_EQ(json.find("rows")->array.size(), 2U);
}

TEST(CompareReportText, NamesDateMachineAndWeights) {
  CompareOptions options = small_comparison();
  options.symbols.resize(1);
  options.modes = {Mode::standard};
  const CompareReport report = compare_modes(options);
  EXPECT_EQ(report.made.date.size(), std::string("2026-01-31T12:00:00Z").size());
  const io::Json json = io::parse_json(json_text(report), "report");
  for (const char* key : {"date", "host", "cpu", "version", "isa", "weights_sha256"}) {
    ASSERT_NE(json.find(key), nullptr) << key;
    EXPECT_FALSE(json.find(key)->string.empty()) << key;
  }
  EXPECT_NE(json.find("threads"), nullptr);
  EXPECT_NE(json.find("seed"), nullptr);
  for (const std::string& text : {markdown_text(report), page_html(report)}) {
    EXPECT_NE(text.find(report.made.date), std::string::npos);
    EXPECT_NE(text.find(report.weights_sha256), std::string::npos);
  }
}

// How it looks is the browser's part; that a failed row is marked is tested here.
TEST(CompareReportText, AFailedCheckIsMarkedOnThePage) {
  CompareReport report;
  report.checks = {{.name = "speed/default", .passed = true, .detail = "quick"}};
  EXPECT_EQ(page_html(report).find("class=\"failed\""), std::string::npos);
  report.checks.push_back({.name = "mae/default", .passed = false, .detail = "off"});
  const std::string page = page_html(report);
  EXPECT_NE(page.find("<tr class=\"failed\"><th>mae/default</th>"), std::string::npos);
  EXPECT_NE(page.find("<p class=\"worse\"><strong>FAILED"), std::string::npos);
}

}  // namespace
}  // namespace toto::validate
