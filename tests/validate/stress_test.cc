// The stress run: healthy engines hold every limit, and each kind of broken engine breaks its own
// limit. Also run under ThreadSanitizer.
#include "validate/stress_runs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "held_out_fixture.h"
#include "io/json.h"
#include "verify_fixture.h"

namespace toto::validate {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;

// Memory figures are made up here: sanitizers keep freed memory and do not count it.
StressOptions small_stress(const Fault& fault = {}) {
  StressOptions options;
  options.model = shared_model();
  options.symbols = two_symbols(120);
  options.max_context = 96;
  options.max_variates = 5;
  options.callers = 3;
  options.engine.threads = 1;  // on a busy machine, threads that wait for each other take seconds
  options.load = faulty(fault);
  options.resident = [] { return 50 * kMegabyte; };
  options.heap = [] { return 10 * kMegabyte; };
  return options;
}

void expect_detail(const StressReport& report, const std::string& name, std::string_view part) {
  EXPECT_NE(detail_of(report, name).find(part), std::string::npos) << detail_of(report, name);
}

TEST(Stress, HealthyModesHoldEveryLimit) {
  int last = 0, total = 0;
  StressOptions options = small_stress();
  options.engine.threads = 2;
  options.progress = [&](int done, int of) {
    EXPECT_EQ(done, last + 1);
    last = done;
    total = of;
  };
  const StressReport report = stress(options);
  // The small model is as fast in one mode as in another under a sanitizer: speed is not its test.
  Names names = failed_in(report);
  std::erase_if(names, [](const std::string& name) { return name.starts_with("speed/"); });
  EXPECT_EQ(names, Names{}) << table_text(report);
  EXPECT_EQ(last, total);
  ASSERT_EQ(report.rows.size(), 12U);
  const Mode modes[] = {Mode::reference, Mode::standard, Mode::reduce_overhead, Mode::max_autotune};
  for (std::size_t i = 0; i < 12; ++i) {
    const StressRow& row = report.rows[i];
    EXPECT_EQ(row.mode, modes[i / 3]);
    EXPECT_EQ(row.iteration, static_cast<int>(i % 3));
    EXPECT_TRUE(row.complete());
    EXPECT_EQ(row.accuracy.count(), 32);
    EXPECT_EQ(row.replans, 0);
    EXPECT_NEAR(row.accuracy.mae(), report.rows[i % 3].accuracy.mae(), 1e-5 * row.accuracy.mae());
  }
}

TEST(Stress, LevelsHaveTheirIterations) {
  EXPECT_EQ(iterations_of(parse_stress_level("quick")), 3);
  EXPECT_EQ(iterations_of(parse_stress_level("full")), 10);
  EXPECT_EQ(iterations_of(parse_stress_level("production-check")), 20);
  const std::string error = testing::error_of([] { (void)parse_stress_level("productoin-check"); });
  EXPECT_NE(error.find("did you mean production-check"), std::string::npos) << error;
}

// ---------------------------------------------------------------------------------- wrong numbers

TEST(Stress, ZerosFromEveryModeAreCaught) {
  expect_zeros_caught(failed_in(stress(small_stress(zeroed()))));
}

TEST(Stress, AWorseMaeIsCaughtWithFigureAndBound) {
  const auto off = [](float factor) {
    return Fault{.on_forecast = [factor](const EngineOptions& options,
                                         std::span<const Series> batch,
                                         std::vector<Forecast>& all) {
      if (!is(options, Mode::standard) || batch[0].id != "ONE" || all[0].horizon != 16) return;
      for (float& value : all[0].mean) value *= factor;
    }};
  };
  const StressReport report = stress(small_stress(off(1.2F)));
  EXPECT_TRUE(failed_in(report).contains("mae/default")) << table_text(report);
  expect_detail(report, "mae/default", "at most 5 % expected");
  EXPECT_FALSE(failed_in(report).contains("mae/reduce-overhead"));
}

// From half of a limit on there is a warning, but no failure.
TEST(Stress, WarnsFromHalfOfALimit) {
  const auto replanning = [](std::int64_t each) {
    return small_stress({.on_warm_up = [each](const EngineOptions& options) {
      return is(options, Mode::max_autotune) ? each : 0;
    }});
  };
  const auto warned = [](const StressReport& report) {
    return std::any_of(report.warnings.begin(), report.warnings.end(),
                       [](const std::string& x) { return x.starts_with("replans/max-autotune"); });
  };
  const StressReport few = stress(replanning(5));
  EXPECT_FALSE(warned(few));
  const StressReport some = stress(replanning(6));
  EXPECT_TRUE(warned(some));
  EXPECT_FALSE(failed_in(some).contains("replans/max-autotune"));
  const StressReport many = stress(replanning(11));
  EXPECT_TRUE(failed_in(many).contains("replans/max-autotune"));
  expect_detail(many, "replans/max-autotune", "11 replans after warm-up, at most 10 expected");
}

TEST(Stress, ANondeterministicModeIsCaught) {
  std::atomic<int> calls = 0;
  const Fault fault{.on_forecast = [&calls](const EngineOptions& options, std::span<const Series>,
                                            std::vector<Forecast>& all) {
    if (!is(options, Mode::reduce_overhead) || ++calls % 60 != 59) return;
    all[0].mean[0] = std::nextafter(all[0].mean[0], INFINITY);
  }};
  const StressReport report = stress(small_stress(fault));
  EXPECT_TRUE(failed_in(report).contains("repeatable/reduce-overhead")) << table_text(report);
  expect_detail(report, "repeatable/reduce-overhead", "numbers differ between equal calls");
}

TEST(Stress, CallersThatDisturbEachOtherAreCaught) {
  std::atomic<int> inside = 0;
  const std::thread::id main = std::this_thread::get_id();
  const Fault fault{.on_forecast = [&, main](const EngineOptions& options, std::span<const Series>,
                                             std::vector<Forecast>& all) {
    if (!is(options, Mode::standard) || std::this_thread::get_id() == main) return;
    if (++inside == 5) all[0].mean[0] += 1;
  }};
  const StressReport report = stress(small_stress(fault));
  EXPECT_TRUE(failed_in(report).contains("repeatable/default"));
  expect_detail(report, "repeatable/default", "from concurrent threads");
}

TEST(Stress, OptimisedModesThatDifferAreCaught) {
  const testing::TemporaryFolder folder;
  const std::string other = testing::made_model(folder, testing::small_config(), 2);
  StressOptions options = small_stress();
  options.load = [&](const std::string& path, const EngineOptions& engine) {
    return load_runner(is(engine, Mode::max_autotune) ? other : path, engine);
  };
  const Names names = failed_in(stress(options));
  for (const char* name : {"same-bits", "network/max-autotune", "shapes/max-autotune"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("network/default"));
}

TEST(Stress, AModelThatChangesWhenReloadedIsCaught) {
  const testing::TemporaryFolder folder;
  const std::string other = testing::made_model(folder, testing::small_config(), 2);
  StressOptions options = small_stress();
  int loads = 0;
  options.load = [&](const std::string& path, const EngineOptions& engine) {
    const bool again = is(engine, Mode::standard) && ++loads == 3;
    return load_runner(again ? other : path, engine);
  };
  const StressReport report = stress(options);
  EXPECT_TRUE(failed_in(report).contains("repeatable/default"));
  expect_detail(report, "repeatable/default", "of the reloaded model");
}

// ------------------------------------------------------------------------------- other failures

TEST(Stress, ASlowModeIsCaught) {
  const StressReport report = stress(small_stress(slowed(Mode::standard, 16)));
  EXPECT_TRUE(failed_in(report).contains("speed/default")) << table_text(report);
  expect_detail(report, "speed/default", "at least 0.8 times expected");
}

TEST(Stress, ALeakIsCaughtHoweverSmall) {
  for (const std::uint64_t bytes : {std::uint64_t{8} << 20, std::uint64_t{100} << 10}) {
    std::uint64_t leaked = 0;
    StressOptions options = small_stress(
        {.on_forecast = [&leaked, bytes](const EngineOptions& engine, std::span<const Series> batch,
                                         std::vector<Forecast>&) {
          if (is(engine, Mode::standard) && batch[0].id == "TWO") leaked += bytes;
        }});
    options.resident = [&] { return 50 * kMegabyte + leaked; };
    options.heap = [&] { return 10 * kMegabyte + leaked; };
    const StressReport report = stress(options);
    EXPECT_TRUE(failed_in(report).contains("heap/default")) << table_text(report);
    EXPECT_EQ(failed_in(report).contains("memory/default"), bytes > (2U << 20));
    expect_detail(report, "heap/default", "MB expected");
  }
}

TEST(Stress, UnreadableMemoryFails) {
  StressOptions options = small_stress();
  options.resident = [] { return std::nullopt; };
  options.heap = [] { return std::nullopt; };
  const Names names = failed_in(stress(options));
  EXPECT_TRUE(names.contains("memory/default"));
  EXPECT_TRUE(names.contains("rows/default"));
  EXPECT_FALSE(names.contains("heap/default")) << "not every allocator counts";
}

TEST(Stress, CallsThatCannotBeCancelledAreCaught) {
  StressOptions options = small_stress();
  options.load = [](const std::string& path, const EngineOptions& engine) {
    std::unique_ptr<Runner> inner = load_runner(path, engine);
    return std::make_unique<FaultyRunner>(
        std::move(inner), engine,
        Fault{.on_request = [](const EngineOptions& wanted, ForecastOptions& request) {
          if (is(wanted, Mode::standard)) request.cancelled = {};
        }});
  };
  const StressReport report = stress(options);
  EXPECT_TRUE(failed_in(report).contains("cancels/default"));
  expect_detail(report, "cancels/default", "a call cancelled at query 1 did not stop");
}

TEST(Stress, AShapeThatFailsIsNamed) {
  const Fault fault{.on_forecast = [](const EngineOptions& options, std::span<const Series> batch,
                                      std::vector<Forecast>&) {
    if (is(options, Mode::standard) && batch[0].num_variates == 5)
      throw Error(ErrorCode::internal, "five is too many");
  }};
  const StressReport report = stress(small_stress(fault));
  EXPECT_TRUE(failed_in(report).contains("shapes/default")) << table_text(report);
  expect_detail(report, "shapes/default", "5 variates: five is too many");
}

TEST(Stress, AModeThatFailsHalfwayLeavesRowsWithTheReason) {
  std::atomic<int> calls = 0;
  const Fault fault{.on_forecast = [&calls](const EngineOptions& options,
                                            std::span<const Series> batch, std::vector<Forecast>&) {
    if (is(options, Mode::standard) && batch[0].id == "TWO" && ++calls == 3)
      throw Error(ErrorCode::internal, "no more");
  }};
  const StressReport report = stress(small_stress(fault));
  EXPECT_TRUE(failed_in(report).contains("runs/default"));
  ASSERT_EQ(report.rows.size(), 12U);
  EXPECT_TRUE(report.rows[3].complete());
  EXPECT_EQ(report.rows[4].complaint, "no more");
  EXPECT_EQ(report.rows[5].complaint, "no more");
  const io::Json json = io::parse_json(json_text(report), "report");
  EXPECT_FALSE(json.find("passed")->boolean);
  const io::Json& row = json.find("rows")->array[5];
  EXPECT_EQ(row.find("error")->string, "no more");
  EXPECT_EQ(row.find("accuracy")->find("mae")->kind, io::Json::Kind::null);
}

TEST(Stress, RefusesWithoutTargets) { expect_refused_without_targets(small_stress(), 60, stress); }

TEST(Stress, CanBeCancelled) { expect_cancellable(small_stress(), stress); }

// Packed weights of another model under this model's name are refused and named, without effect.
TEST(Stress, ACacheFileFromAnotherModelIsNamedAndNotUsed) {
  namespace fs = std::filesystem;
  const testing::TemporaryFolder folder;
  const std::string other = testing::made_model(folder, testing::small_config(), 2);
  const auto cached = [&](const std::string& model, const std::string& cache) {
    EngineOptions engine;
    engine.cache = {.folder = folder / cache, .min_model_bytes = 1};
    (void)Engine::load(model, engine);
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder / cache)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  };
  const std::vector<fs::path> mine = cached(shared_model(), "mine");
  const std::vector<fs::path> theirs = cached(other, "theirs");
  ASSERT_EQ(mine.size(), 1U);
  ASSERT_EQ(theirs.size(), 1U);
  fs::copy_file(theirs[0], mine[0], fs::copy_options::overwrite_existing);

  StressOptions options = small_stress();
  options.engine.cache = {.folder = folder / "mine", .min_model_bytes = 1};
  const StressReport report = stress(options);
  EXPECT_FALSE(failed_in(report).contains("network/default")) << table_text(report);
  EXPECT_FALSE(failed_in(report).contains("same-bits"));
  const bool named =
      std::any_of(report.weights.begin(), report.weights.end(), [&](const std::string& sentence) {
        return sentence.find(mine[0].filename().string() + " was made from other weights") !=
               std::string::npos;
      });
  EXPECT_TRUE(named) << markdown_text(report);
}

}  // namespace
}  // namespace toto::validate
