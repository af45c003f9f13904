// `toto verify` on a model: what is right passes, and every kind of wrong engine is caught by the
// check that is there for it.
#include "validate/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "io/json.h"
#include "test_model.h"
#include "verify_fixture.h"

// Under AddressSanitizer freed memory waits in quarantine and would be taken for memory the engine
// needs. Elsewhere it is not called.
extern "C" const char* __asan_default_options();  // NOLINT: the name is theirs
const char* __asan_default_options() {            // NOLINT: the name is theirs
  return "quarantine_size_mb=1";
}

namespace toto::validate {
namespace {

using Names = std::vector<std::string>;

bool is_default(const EngineOptions& options) { return options.mode == Mode::standard; }

class VerifyTest : public ::testing::Test {
 protected:
  // One model for all tests of this file; it is never changed.
  static const std::string& model() {
    static const testing::TemporaryFolder folder;
    static const std::string path = testing::made_model(folder);
    return path;
  }

  // One thread, because threads that wait for each other take seconds on a busy machine.
  static VerifyReport run(const Fault& fault = {}, std::vector<Mode> modes = all_modes(DType::f32),
                          int threads = 1) {
    VerifyOptions options;
    options.model = model();
    options.modes = std::move(modes);
    options.engine.threads = threads;
    options.load = faulty(fault);
    return verify(options);
  }

  // Exactly these checks fail.
  static void expect_caught(const Fault& fault, const std::set<std::string>& by, int threads = 1) {
    const VerifyReport report = run(fault, all_modes(DType::f32), threads);
    const Names names = failed_names(report);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), by) << table_text(report);
    EXPECT_FALSE(report.passed());
  }

  static const std::set<std::string>& accuracy_checks() {
    static const std::set<std::string> names = {
        "production/one-forward-pass",   "production/eight-autoregressive-steps",
        "production/context-16-patches", "production/context-32-patches",
        "production/context-48-patches", "production/context-64-patches",
        "production/varying-shapes"};
    return names;
  }
  static std::set<std::string> accuracy_checks_and(const std::set<std::string>& more) {
    std::set<std::string> names = accuracy_checks();
    names.insert(more.begin(), more.end());
    return names;
  }
};

// --------------------------------------------------------------------------------- what is healthy

TEST_F(VerifyTest, AHealthyEnginePassesElevenSubjectsAndTheInvariances) {
  const VerifyReport report = run();
  EXPECT_TRUE(report.passed()) << table_text(report);
  Names names;
  for (const CheckResult& check : report.checks) names.push_back(check.name);
  Names expected = {"production/one-forward-pass",
                    "production/eight-autoregressive-steps",
                    "production/context-16-patches",
                    "production/context-32-patches",
                    "production/context-48-patches",
                    "production/context-64-patches",
                    "production/speed",
                    "production/memory-overhead",
                    "production/kv-cache",
                    "production/varying-shapes",
                    "production/determinism",
                    "invariance/reference/batch",
                    "invariance/reference/threads",
                    "invariance/default/batch",
                    "invariance/default/threads"};
  if (isa_available(Isa::avx2)) expected.emplace_back("invariance/default/isa");
  for (const std::string mode : {"reduce-overhead", "max-autotune"}) {
    expected.push_back("invariance/" + mode + "/batch");
    expected.push_back("invariance/" + mode + "/threads");
    if (isa_available(Isa::avx2)) expected.push_back("invariance/" + mode + "/isa");
  }
  expected.emplace_back("invariance/modes");
  EXPECT_EQ(names, expected);
  EXPECT_EQ(std::count_if(names.begin(), names.end(),
                          [](const auto& name) { return name.starts_with("production/"); }),
            11);
  EXPECT_NE(find_check(report, "production/kv-cache").detail.find("StaticKVCache"),
            std::string::npos);
  EXPECT_FALSE(report.trained);
  EXPECT_EQ(report.weights_sha256.size(), 64U);
}

TEST_F(VerifyTest, EveryIsaIsComparedOrSkippedWithAReason) {
  const VerifyReport report = run();
  for (const Isa isa : all_isas()) {
    const std::string name(name_of(isa));
    const auto skipped =
        std::find_if(report.skipped.begin(), report.skipped.end(),
                     [&](const SkippedCheck& x) { return x.name.ends_with("/" + name); });
    EXPECT_EQ(skipped == report.skipped.end(), isa_available(isa)) << name;
    if (isa_available(isa) && isa_available(Isa::avx2)) {
      const std::string& detail = find_check(report, "invariance/default/isa").detail;
      EXPECT_NE(detail.find(name), std::string::npos) << detail;
    }
  }
}

TEST_F(VerifyTest, FiguresAreFarBelowTheirBounds) {
  const VerifyReport report = run();
  for (const std::string& name : accuracy_checks()) {
    const CheckResult& check = find_check(report, name);
    EXPECT_LE(check.figure.value_or(NAN), 0.5 * check.bound.value_or(NAN))
        << name << ": " << check.detail;
  }
}

TEST_F(VerifyTest, VerifiesReferenceAloneInFloat64) {
  VerifyOptions options;
  options.model = model();
  options.engine.dtype = DType::f64;
  options.modes = all_modes(DType::f64);
  const VerifyReport report = verify(options);
  EXPECT_TRUE(report.passed()) << table_text(report);
  EXPECT_EQ(options.modes, std::vector<Mode>{Mode::reference});
}

TEST_F(VerifyTest, ReportsProgressAndStopsWhenAsked) {
  VerifyOptions options;
  options.model = model();
  options.modes = {Mode::standard};
  int last = 0, total = 0;
  options.progress = [&](int done, int of) {
    EXPECT_EQ(done, last + 1);
    last = done;
    total = of;
  };
  (void)verify(options);
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 20);
  options.cancelled = [] { return true; };
  ErrorCode code{};
  testing::error_of([&] { (void)verify(options); }, &code);
  EXPECT_EQ(code, ErrorCode::cancelled);
}

// ----------------------------------------------------------------------------------- wrong numbers

TEST_F(VerifyTest, CatchesZerosInOneMode) {
  const Fault fault{.on_trace = [](const EngineOptions& options, const Series&, Trace& trace) {
    if (!is_default(options)) return;
    change_network(trace, [](auto& values) { std::fill(values.begin(), values.end(), 0.0); });
  }};
  expect_caught(fault, accuracy_checks_and({"production/kv-cache"}));
}

// In all modes alike, float64 included: nothing differs from anything.
TEST_F(VerifyTest, CatchesZerosInEveryMode) {
  const Fault fault{
      .on_trace =
          [](const EngineOptions&, const Series&, Trace& trace) {
            change_network(trace,
                           [](auto& values) { std::fill(values.begin(), values.end(), 0.0); });
          },
      .on_forecast =
          [](const EngineOptions&, std::span<const Series>, std::vector<Forecast>& forecasts) {
            for (Forecast& forecast : forecasts) {
              for (auto* values : {&forecast.mean, &forecast.median, &forecast.point,
                                   &forecast.quantiles, &forecast.samples}) {
                std::fill(values->begin(), values->end(), 0.0F);
              }
            }
          }};
  expect_caught(fault, accuracy_checks());
}

// The network's answer replaced by a plausible constant, the scaler's statistics left as they are:
// what a comparison of loc and scale alone would let through.
TEST_F(VerifyTest, CatchesAConstantNetwork) {
  const Fault fault{.on_trace = [](const EngineOptions&, const Series&, Trace& trace) {
    std::fill(values_of(trace, "df").begin(), values_of(trace, "df").end(), 3.0);
    std::fill(values_of(trace, "component_loc").begin(), values_of(trace, "component_loc").end(),
              0.1);
    std::fill(values_of(trace, "component_scale").begin(),
              values_of(trace, "component_scale").end(), 1.0);
    std::fill(values_of(trace, "logits").begin(), values_of(trace, "logits").end(), 0.5);
  }};
  expect_caught(fault, {"production/one-forward-pass"});
}

TEST_F(VerifyTest, CatchesAComponentOffByATenThousandth) {
  const Fault fault{.on_trace = [](const EngineOptions& options, const Series&, Trace& trace) {
    if (!is_default(options)) return;
    for (double& value : values_of(trace, "component_loc")) value *= 1.0001;
  }};
  expect_caught(fault, accuracy_checks());
}

TEST_F(VerifyTest, CatchesWrongDecodingAfterACorrectFirstPatch) {
  const Fault fault{.on_trace = [](const EngineOptions& options, const Series&, Trace& trace) {
    std::vector<double>& mean = values_of(trace, "mean");
    const auto variates = static_cast<std::size_t>(trace.find("mean")->shape[0]);
    const auto patch = static_cast<std::size_t>(trace.find("df")->shape[1]);
    const std::size_t steps = mean.size() / variates;
    if (!is_default(options) || steps < 9 * patch) return;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      if (i % steps >= 8 * patch) mean[i] *= 1.001;  // the last patch alone
    }
  }};
  expect_caught(fault, {"production/eight-autoregressive-steps"});
}

TEST_F(VerifyTest, CatchesOneNanOrOneMissingNumber) {
  const auto wrong = [](auto change) {
    return Fault{.on_trace = [change](const EngineOptions& options, const Series&, Trace& trace) {
      if (is_default(options)) change(trace);
    }};
  };
  expect_caught(wrong([](Trace& trace) { values_of(trace, "logits").back() = NAN; }),
                accuracy_checks());
  expect_caught(wrong([](Trace& trace) { values_of(trace, "component_scale").pop_back(); }),
                accuracy_checks());
  expect_caught(wrong([](Trace& trace) { values_of(trace, "logits").clear(); }), accuracy_checks());
  expect_caught(wrong([](Trace& trace) { values_of(trace, "df").front() = 1.9; }),
                accuracy_checks());
}

// One weight differs between the two modes: the other engine runs a changed copy of the model.
TEST_F(VerifyTest, CatchesOneChangedWeightInOneMode) {
  const testing::TemporaryFolder folder;
  const std::string other = testing::made_model(folder);
  {
    std::fstream file(other + "/model.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto size = static_cast<std::streamoff>(file.tellg());
    const float weight = 0.35F;
    file.seekp(size - 400);
    file.write(reinterpret_cast<const char*>(&weight), sizeof weight);
  }
  VerifyOptions options;
  options.model = model();
  options.load = [&other](const std::string& path, const EngineOptions& engine) {
    return load_runner(is_default(engine) ? other : path, engine);
  };
  const Names names = failed_names(verify(options));
  for (const std::string& name : accuracy_checks()) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

// ----------------------------------------------------------------------------- wrong in other ways

TEST_F(VerifyTest, CatchesASlowMode) {
  const int patch = load_runner(model(), {})->model().facts.patch;
  expect_caught(slowed(Mode::standard, patch), {"production/speed"});
}

TEST_F(VerifyTest, CatchesAMemoryHog) {
  static std::vector<char> hoard;
  const Fault fault{.on_load = [](const EngineOptions& options) {
    if (is_default(options) && hoard.empty()) hoard.assign(std::size_t{200} << 20, 'x');
  }};
  expect_caught(fault, {"production/memory-overhead"});
  hoard = {};
}

TEST_F(VerifyTest, CatchesAMissingCacheAndReplans) {
  expect_caught(
      {.cache_name = [](const EngineOptions& options, const std::string& name) -> std::string {
        return is_default(options) ? "none" : name;
      }},
      {"production/kv-cache"});
  expect_caught({.replans = 3}, {"production/kv-cache"});
}

// It calls its cache by a name, and forecasts as if there were none.
TEST_F(VerifyTest, CatchesTheUncachedPath) {
  VerifyOptions options;
  options.model = model();
  options.load = [](const std::string& folder, const EngineOptions& engine) {
    EngineOptions changed = engine;
    if (is_default(engine)) {
      changed.mode = Mode::reference;
      changed.use_kv_cache = false;
    }
    const Fault fault{.cache_name = [](const EngineOptions&, const std::string&) -> std::string {
      return "StaticKVCache";
    }};
    return std::make_unique<FaultyRunner>(load_runner(folder, changed), engine, fault);
  };
  const Names names = failed_names(verify(options));
  EXPECT_NE(std::find(names.begin(), names.end(), "production/kv-cache"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "production/eight-autoregressive-steps"),
            names.end());
}

TEST_F(VerifyTest, CatchesAShapeThatFails) {
  const Fault in_trace{.on_trace = [](const EngineOptions& options, const Series& series, Trace&) {
    if (is_default(options) && series.num_variates == 5) {
      throw Error(ErrorCode::internal, "five is too many");
    }
  }};
  const VerifyReport report = run(in_trace);
  EXPECT_EQ(failed_names(report), Names{"production/varying-shapes"});
  EXPECT_NE(find_check(report, "production/varying-shapes").detail.find("five is too many"),
            std::string::npos);

  const auto with = [](auto change) {
    return Fault{.on_forecast = [change](const EngineOptions& options,
                                         std::span<const Series> batch,
                                         std::vector<Forecast>& forecasts) {
      if (is_default(options) && batch[0].num_variates == 5) change(forecasts);
    }};
  };
  const std::set<std::string> shapes = {"production/varying-shapes"};
  using Forecasts = std::vector<Forecast>;
  expect_caught(with([](Forecasts&) { throw Error(ErrorCode::internal, "no"); }), shapes);
  expect_caught(with([](Forecasts& all) { all[0].mean[0] = NAN; }), shapes);
  expect_caught(with([](Forecasts& all) { all[0].quantiles[0] = 1e30F; }), shapes);  // they cross
  expect_caught(with([](Forecasts& all) { all[0].samples.pop_back(); }), shapes);
  expect_caught(with([](Forecasts& all) { all.clear(); }), shapes);
}

// ------------------------------------------------------------------------------------- invariances

// The smallest possible change of one number: bit for bit means that this is seen.
void nudge(std::vector<float>& values) {
  if (!values.empty()) values.back() = std::nextafter(values.back(), INFINITY);
}

TEST_F(VerifyTest, CatchesRunsThatDiffer) {
  static std::atomic<int> calls;
  const auto sometimes = [](auto member) {
    return Fault{.on_forecast = [member](const EngineOptions& options,
                                         std::span<const Series> batch,
                                         std::vector<Forecast>& forecasts) {
      // The determinism check has a separate series; other checks repeat nothing.
      if (is_default(options) && batch[0].id == "runs" && ++calls == 15)
        nudge(forecasts[0].*member);
    }};
  };
  for (const auto member : {&Forecast::mean, &Forecast::quantiles}) {
    calls = 0;
    expect_caught(sometimes(member), {"production/determinism"});
  }
  calls = 1;  // an even one: the sampled forecast
  expect_caught(sometimes(&Forecast::samples), {"production/determinism"});
}

TEST_F(VerifyTest, CatchesResultsThatDependOnThreadsBatchOrInstructionSet) {
  const auto when = [](auto condition, auto member) {
    return Fault{.on_forecast = [=](const EngineOptions& options, std::span<const Series> batch,
                                    std::vector<Forecast>& forecasts) {
      if (is_default(options) && condition(options, batch)) nudge(forecasts.back().*member);
    }};
  };
  for (const auto member : {&Forecast::mean, &Forecast::quantiles, &Forecast::samples}) {
    expect_caught(
        when([](const EngineOptions& options, auto) { return options.threads == 3; }, member),
        {"invariance/default/threads"});
    const auto in_a_batch = [](const EngineOptions& options, std::span<const Series> batch) {
      return batch.size() > 1 && options.threads == 0 && options.isa == Isa::automatic;
    };
    // With 0 threads, because the check of threads also runs batches, with 1 to 3.
    expect_caught(when(in_a_batch, member), {"invariance/default/batch"}, 0);
    if (!isa_available(Isa::avx2)) continue;
    expect_caught(
        when([](const EngineOptions& options, auto) { return options.isa == Isa::avx2; }, member),
        {"invariance/default/isa"});
  }
}

TEST_F(VerifyTest, TwoEmptyAnswersProveNothing) {
  const Fault fault{.on_forecast = [](const EngineOptions&, std::span<const Series>,
                                      std::vector<Forecast>& forecasts) { forecasts.clear(); }};
  std::set<std::string> expected = {"production/determinism",
                                    "production/varying-shapes",
                                    "invariance/reference/batch",
                                    "invariance/reference/threads",
                                    "invariance/default/batch",
                                    "invariance/default/threads",
                                    "invariance/reduce-overhead/batch",
                                    "invariance/reduce-overhead/threads",
                                    "invariance/max-autotune/batch",
                                    "invariance/max-autotune/threads",
                                    "invariance/modes"};
  if (isa_available(Isa::avx2)) {
    expected.insert({"invariance/default/isa", "invariance/reduce-overhead/isa",
                     "invariance/max-autotune/isa"});
  }
  expect_caught(fault, expected);
}

// ------------------------------------------------------------------------------------------- modes

TEST_F(VerifyTest, AnUnknownModeFailsItsChecks) {
  VerifyOptions options;
  options.model = model();
  options.modes = {Mode::standard, Mode::max_autotune};
  options.load = [](const std::string& folder, const EngineOptions& engine) {
    if (engine.mode == Mode::max_autotune)
      throw Error(ErrorCode::unsupported, "this mode does not exist");
    return load_runner(folder, engine);
  };
  const VerifyReport report = verify(options);
  EXPECT_FALSE(report.passed());
  for (const CheckResult& check : report.checks) {
    const bool concerned = check.name.starts_with("production/") ||
                           check.name.find("max-autotune") != std::string::npos ||
                           check.name == "invariance/modes";
    EXPECT_EQ(check.passed, !concerned) << check.name;
  }
  EXPECT_NE(find_check(report, "production/speed").detail.find("this mode does not exist"),
            std::string::npos);
}

TEST_F(VerifyTest, OptimisedModesAreComparedBitForBit) {
  bool differ = false;
  VerifyOptions options;
  options.model = model();
  options.modes = {Mode::standard, Mode::max_autotune};
  options.load = [&differ](const std::string& folder, const EngineOptions& engine) {
    EngineOptions available = engine;
    if (engine.mode == Mode::max_autotune) available.mode = Mode::standard;
    Fault fault;
    if (differ && engine.mode == Mode::max_autotune) {
      fault.on_forecast = [](const EngineOptions&, std::span<const Series>,
                             std::vector<Forecast>& all) { nudge(all.back().samples); };
    }
    return std::make_unique<FaultyRunner>(load_runner(folder, available), engine, fault);
  };
  EXPECT_TRUE(find_check(verify(options), "invariance/modes").passed);
  differ = true;
  const CheckResult check = find_check(verify(options), "invariance/modes");
  EXPECT_FALSE(check.passed);
  EXPECT_GT(check.figure.value_or(NAN), 0);
}

TEST_F(VerifyTest, RefusesAnEmptyRun) {
  VerifyOptions options;
  options.model = model();
  ErrorCode code{};
  options.modes = {};
  testing::error_of([&] { (void)verify(options); }, &code);
  EXPECT_EQ(code, ErrorCode::invalid_argument);
  options.modes = {Mode::standard, Mode::standard};
  EXPECT_NE(testing::error_of([&] { (void)verify(options); }).find("named twice"),
            std::string::npos);
  options.modes = {Mode::standard};
  options.golden_only = true;
  EXPECT_NE(testing::error_of([&] { (void)verify(options); }).find("golden"), std::string::npos);
  options.golden_only = false;
  options.model = model() + "-nowhere";
  testing::error_of([&] { (void)verify(options); }, &code);
  EXPECT_EQ(code, ErrorCode::not_found);
}

// ----------------------------------------------------------------------------------------- reports

TEST(VerifyReport, FailsWithoutChecks) { EXPECT_FALSE(VerifyReport{}.passed()); }

VerifyReport hostile_report() {
  VerifyReport report;
  report.model = "<script>|m";
  report.checks = {{.name = "golden/a|b\n<i>/default/mean",
                    .passed = true,
                    .figure = 1.5e-7,
                    .bound = 3e-7,
                    .max_error = 2e-6,
                    .own_error = 1e-7},
                   {.name = "production/speed",
                    .passed = false,
                    .figure = NAN,
                    .bound = INFINITY,
                    .detail = "bell \a and \x1b[31m red"}};
  report.skipped = {{"invariance/modes", "one | only"}};
  return report;
}

TEST(VerifyReport, IsValidJsonWithoutNan) {
  const io::Json json = io::parse_json(json_text(hostile_report()), "report");
  EXPECT_FALSE(json.find("passed")->boolean);
  const std::vector<io::Json>& checks = json.find("checks")->array;
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_TRUE(checks[0].find("passed")->boolean);
  EXPECT_EQ(checks[0].find("figure")->real, 1.5e-7);
  EXPECT_EQ(checks[0].find("bound")->real, 3e-7);
  EXPECT_EQ(checks[0].find("max_error")->real, 2e-6);
  EXPECT_EQ(checks[0].find("reference_error")->real, 1e-7);
  EXPECT_EQ(checks[1].find("figure")->kind, io::Json::Kind::null);
  EXPECT_EQ(checks[1].find("bound")->kind, io::Json::Kind::null);
  EXPECT_EQ(json.find("skipped")->array[0].find("reason")->string, "one | only");
}

TEST(VerifyReport, EscapesHostileNames) {
  const std::string markdown = markdown_text(hostile_report());
  EXPECT_EQ(markdown.find('<'), std::string::npos);
  EXPECT_NE(markdown.find("a\\|b &lt;i&gt;"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("FAIL"), std::string::npos);
  const std::string table = table_text(hostile_report());
  for (const std::string& text : {markdown, table}) {
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  }
  EXPECT_NE(table.find("FAILED: 1 of 2 checks passed, 1 skipped"), std::string::npos) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5);  // head, two checks, skip, summary
}

}  // namespace
}  // namespace toto::validate
