// The committed goldens hold in every mode, and a golden or a network that was tampered with does
// not, however small the change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "golden_fixture.h"
#include "validate/golden.h"
#include "verify_fixture.h"

namespace toto::validate {
namespace {

using io::TemporaryFolder;

VerifyReport check_goldens(const std::string& path, DType dtype = DType::f32,
                           Loader load = load_runner) {
  VerifyOptions options;
  options.goldens = {path};
  options.golden_only = true;
  options.engine.dtype = dtype;
  options.modes = all_modes(dtype);
  options.load = std::move(load);
  return verify(options);
}

std::string sentences(const VerifyReport& report) {
  std::string text;
  for (const CheckResult& check : report.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

std::size_t num_committed() {
  const std::vector<std::string> paths = {kCommittedGoldens};
  return find_goldens(paths).size();
}

// Outputs of all goldens; those without a cache are answered by one mode only.
std::size_t num_outputs() {
  const std::vector<std::string> paths = {kCommittedGoldens};
  std::size_t count = 0;
  for (const GoldenFolder& folder : find_goldens(paths))
    count += read_golden(folder).outputs.size();
  return count;
}

TEST(VerifyGoldens, CommittedOnesPassInEveryMode) {
  ASSERT_GE(num_committed(), 14U);
  const VerifyReport report = check_goldens(kCommittedGoldens);
  EXPECT_TRUE(report.passed()) << sentences(report);
  // At least: each output in one mode, all but an uncached mean in another, and the golden itself.
  EXPECT_GE(report.checks.size(), 2 * num_outputs());
}

TEST(VerifyGoldens, ReferenceInFloat64AgreesWithPyTorchInFloat64) {
  ASSERT_GE(num_committed(), 14U);
  const VerifyReport report = check_goldens(kCommittedGoldens, DType::f64);
  EXPECT_TRUE(report.passed()) << sentences(report);
  EXPECT_GE(report.checks.size(), num_outputs());
}

TEST(VerifyGoldens, NamesEveryOutputAndItsErrors) {
  const VerifyReport report = check_goldens(std::string(kCommittedGoldens) + "/long_horizon");
  std::vector<std::string> names;
  for (const CheckResult& check : report.checks) {
    names.push_back(check.name);
    if (check.name == "plausible/long_horizon") continue;
    EXPECT_LE(check.figure.value_or(NAN), check.max_error.value_or(NAN)) << check.name;
    EXPECT_GE(check.bound.value_or(NAN), 1.25 * check.own_error.value_or(NAN)) << check.name;
  }
  std::vector<std::string> expected;
  for (const char* mode : {"reference", "default", "reduce-overhead", "max-autotune"}) {
    for (const char* output : {"loc", "scale", "df", "component_loc", "component_scale", "logits",
                               "mean", "mean_no_cache"}) {
      if (mode != std::string_view("reference") && output == std::string_view("mean_no_cache"))
        break;
      expected.push_back(std::string("golden/long_horizon/") + mode + "/" + output);
    }
  }
  expected.emplace_back("plausible/long_horizon");
  EXPECT_EQ(names, expected);
}

// -------------------------------------------------------------------------------- tampered goldens

constexpr const char* kOutputs[] = {
    "loc", "scale", "df", "component_loc", "component_scale", "logits", "mean", "mean_no_cache"};

// How a spoiled golden ends: refused before anything is run, or with checks that fail.
enum class Outcome { holds, fails, refused };

Outcome outcome_of(const std::string& folder, DType dtype = DType::f32) {
  try {
    return check_goldens(folder, dtype).passed() ? Outcome::holds : Outcome::fails;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt_file) << error.what();
    return Outcome::refused;
  }
}

// The outcome with one copied golden whose case was changed.
Outcome outcome_with(const char* name, const std::function<void(TensorFile&)>& change) {
  const TemporaryFolder folder;
  const std::string golden = copied_golden(folder, name);
  TensorFile file(golden + "/case.safetensors");
  change(file);
  file.save();
  return outcome_of(golden);
}

TEST(TamperedGolden, AnUnchangedCopyPasses) {
  EXPECT_EQ(outcome_with("batch_of_series", [](TensorFile&) {}), Outcome::holds);
}

// 1.0009 keeps the golden's own error below 1e-3 of its size, so that its own bound would let it
// pass; only our float64 run tells.
TEST(TamperedGolden, ScaledFloat64IsCaught) {
  for (const char* output : kOutputs) {
    for (const double factor : {1.1, 1.001, 1.0009, 0.9995, 1.00001}) {
      SCOPED_TRACE(::testing::Message() << output << " by " << factor);
      const Outcome outcome = outcome_with("long_horizon", [&](TensorFile& file) {
        file[std::string("f64.") + output].edit<double>([&](double& value) { value *= factor; });
      });
      EXPECT_NE(outcome, Outcome::holds);
      if (factor == 1.1) {
        EXPECT_EQ(outcome, Outcome::refused);
      } else if (factor == 1.0009) {
        EXPECT_EQ(outcome, Outcome::fails);
      }
    }
  }
}

// Without the check of the golden itself this one would hold: that is what the check is for.
TEST(TamperedGolden, ScaledFloat64WouldWidenItsOwnBound) {
  const TemporaryFolder folder;
  const std::string golden = copied_golden(folder, "long_horizon");
  TensorFile file(golden + "/case.safetensors");
  file["f64.mean"].edit<double>([](double& value) { value *= 1.0009; });
  file.save();
  const VerifyReport report = check_goldens(golden);
  EXPECT_TRUE(find_check(report, "golden/long_horizon/default/mean").passed);
  EXPECT_EQ(failed_names(report), std::vector<std::string>{"plausible/long_horizon"});
}

TEST(TamperedGolden, ScaledFloat32AndFloat64TogetherAreCaught) {
  for (const char* output : kOutputs) {
    SCOPED_TRACE(output);
    EXPECT_EQ(outcome_with("long_horizon",
                           [&](TensorFile& file) {
                             const std::string name = output;
                             file["f64." + name].edit<double>([](double& x) { x *= 1.001; });
                             file["f32." + name].edit<float>([](float& x) { x *= 1.001F; });
                           }),
              Outcome::fails);
  }
}

// Noise in the float32 values widens the bound as well.
TEST(TamperedGolden, NoisyFloat32IsCaught) {
  EXPECT_EQ(outcome_with("long_horizon",
                         [](TensorFile& file) {
                           bool up = false;
                           file["f32.mean"].edit<float>([&up](float& value) {
                             up = !up;
                             value *= up ? 1.0008F : 0.9992F;
                           });
                         }),
            Outcome::fails);
}

TEST(TamperedGolden, OneChangedValueIsCaught) {
  for (const char* output : kOutputs) {
    SCOPED_TRACE(output);
    EXPECT_NE(outcome_with("long_horizon",
                           [&](TensorFile& file) {
                             TensorFile::Tensor& tensor = file[std::string("f64.") + output];
                             std::vector<double> values = tensor.values<double>();
                             values[values.size() / 2] *= 1.01;
                             tensor.set(values);
                           }),
              Outcome::holds);
  }
}

TEST(TamperedGolden, OneSeriesOfABatchIsCaught) {
  EXPECT_NE(outcome_with("batch_of_series",
                         [](TensorFile& file) {
                           std::vector<double> values = file["f64.mean"].values<double>();
                           for (std::size_t i = 0; i < 40; ++i) values[i] *= 1.0005;
                           file["f64.mean"].set(values);
                         }),
            Outcome::holds);
}

TEST(TamperedGolden, SwappedOutputsAreCaught) {
  const auto swapped = [](const char* a, const char* b) {
    return [=](TensorFile& file) {
      for (const std::string dtype : {"f32.", "f64."}) {
        std::swap(file[dtype + a].bytes, file[dtype + b].bytes);
      }
    };
  };
  EXPECT_EQ(outcome_with("long_horizon", swapped("mean", "mean_no_cache")), Outcome::fails);
  EXPECT_EQ(outcome_with("long_horizon", swapped("component_loc", "logits")), Outcome::fails);
  EXPECT_EQ(outcome_with("long_horizon", swapped("df", "component_scale")), Outcome::refused);
}

TEST(TamperedGolden, ChangedInputsAreCaught) {
  const auto first = [](const char* tensor, auto value) {
    return [=](TensorFile& file) {
      auto values = file[tensor].values<decltype(value)>();
      values.back() = value;
      file[tensor].set(values);
    };
  };
  EXPECT_EQ(outcome_with("exogenous", first("series", 1.0F)), Outcome::fails);
  EXPECT_EQ(outcome_with("exogenous", first("padding_mask", std::uint8_t{0})), Outcome::fails);
  EXPECT_EQ(outcome_with("two_groups",
                         [](TensorFile& file) {
                           file["id_mask"].edit<std::int64_t>([](std::int64_t& id) { id = 0; });
                         }),
            Outcome::fails);
  EXPECT_EQ(outcome_with("exogenous",
                         [](TensorFile& file) {
                           file["future_exogenous"].edit<float>([](float& x) { x += 0.1F; });
                         }),
            Outcome::fails);
}

// The horizon's known future is fed back, and its values are part of `mean`.
TEST(TamperedGolden, ADroppedKnownFutureIsCaught) {
  EXPECT_EQ(outcome_with("exogenous", [](TensorFile& file) { file.remove("future_exogenous"); }),
            Outcome::fails);
}

TEST(TamperedGolden, FilesOfAnotherGoldenAreCaught) {
  const TemporaryFolder folder;
  const std::string golden = copied_golden(folder, "long_horizon");
  const std::string other = copied_golden(folder, "head_dim_64");
  for (const char* file : {"/config.json", "/model.safetensors"}) {
    std::filesystem::copy(other + file, golden + file,
                          std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_EQ(outcome_of(golden), Outcome::refused);
}

// -------------------------------------------------------------------------------- changed networks

TEST(ChangedWeights, AreCaughtInEveryMode) {
  for (const char* name : {"univariate_mini", "two_groups", "variate_labels", "price_walk"}) {
    for (const WeightChange& change : weight_changes()) {
      SCOPED_TRACE(std::string(name) + ": " + change.name);
      const TemporaryFolder folder;
      const std::string golden = copied_golden(folder, name);
      TensorFile weights(golden + "/model.safetensors");
      change.change(weights);
      weights.save();
      const VerifyReport report = check_goldens(golden);
      for (const char* mode : {"reference", "default"}) {
        const std::string prefix = std::string("golden/") + name + "/" + mode + "/";
        EXPECT_FALSE(find_check(report, prefix + "mean").passed) << prefix;
        EXPECT_FALSE(find_check(report, prefix + "component_loc").passed) << prefix;
        EXPECT_TRUE(find_check(report, prefix + "loc").passed) << "of the input alone";
      }
      EXPECT_EQ(outcome_of(golden, DType::f64), Outcome::fails);
    }
  }
}

// ---------------------------------------------------------------------------------- broken engines

TEST(BrokenEngine, ThatReturnsZerosIsCaughtByEveryGolden) {
  const Fault fault{.on_trace = [](const EngineOptions&, const Series&, Trace& trace) {
    change_network(trace, [](auto& values) { std::fill(values.begin(), values.end(), 0.0); });
  }};
  const VerifyReport report = check_goldens(kCommittedGoldens, DType::f32, faulty(fault));
  for (const CheckResult& check : report.checks) {
    const bool from_input = check.name.ends_with("/loc") || check.name.ends_with("/scale");
    EXPECT_EQ(check.passed, from_input) << check.name;
  }
}

TEST(BrokenEngine, ThatIsSlightlyOffInOneVariateIsCaught) {
  const auto off = [](double factor) {
    return faulty(
        {.on_trace = [factor](const EngineOptions& options, const Series& series, Trace& trace) {
          if (options.mode != Mode::standard || series.id != "batch_of_series[3]") return;
          const auto horizon = values_of(trace, "mean").size() / 2;
          for (std::size_t i = horizon; i < values_of(trace, "mean").size(); ++i)
            values_of(trace, "mean")[i] *= factor;
        }});
  };
  const std::string golden = std::string(kCommittedGoldens) + "/batch_of_series";
  const VerifyReport report = check_goldens(golden, DType::f32, off(1 + 6e-7));
  EXPECT_EQ(failed_names(report), std::vector<std::string>{"golden/batch_of_series/default/mean"});
  EXPECT_NE(sentences(report).find("series 3, variate 1"), std::string::npos) << sentences(report);
  EXPECT_TRUE(check_goldens(golden, DType::f32, off(1)).passed());
}

TEST(BrokenEngine, WithNanOrTooFewNumbersIsCaught) {
  const std::string golden = std::string(kCommittedGoldens) + "/fused_mlp";
  const auto failed_with = [&](auto change) {
    const Fault fault{.on_trace = [=](const EngineOptions& options, const Series&, Trace& trace) {
      if (options.mode == Mode::standard) change(trace);
    }};
    return failed_names(check_goldens(golden, DType::f32, faulty(fault)));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(failed_with([](Trace& trace) { values_of(trace, "mean")[0] = NAN; }),
            Names{"golden/fused_mlp/default/mean"});
  EXPECT_EQ(failed_with([](Trace& trace) { values_of(trace, "df").pop_back(); }),
            Names{"golden/fused_mlp/default/df"});
  EXPECT_EQ(failed_with([](Trace& trace) { values_of(trace, "logits").clear(); }),
            Names{"golden/fused_mlp/default/logits"});
}

// One value off by less than the mean over all of them would notice.
TEST(BrokenEngine, InFloat64IsJudgedByItsLargestErrorToo) {
  const std::string golden = std::string(kCommittedGoldens) + "/head_dim_64";
  const std::vector<double> df =
      TensorFile(golden + "/case.safetensors")["f64.df"].values<double>();
  const double largest = *std::max_element(df.begin(), df.end());
  const double off = 0.8e-10 * mean_size(df) * static_cast<double>(df.size());
  ASSERT_GT(off, 1.1e-8 * largest);
  const Fault fault{.on_trace = [off](const EngineOptions&, const Series&, Trace& trace) {
    values_of(trace, "df")[5] += off;
  }};
  const VerifyReport report = check_goldens(golden, DType::f64, faulty(fault));
  EXPECT_EQ(failed_names(report), std::vector<std::string>{"golden/head_dim_64/reference/df"});
  EXPECT_NE(sentences(report).find("largest error"), std::string::npos) << sentences(report);
}

TEST(Modes, UnknownOnesFailOnlyTheirOwnChecks) {
  VerifyOptions options;
  options.goldens = {std::string(kCommittedGoldens) + "/fused_mlp"};
  options.golden_only = true;
  options.modes = {Mode::standard, Mode::max_autotune};
  options.load = [](const std::string& folder, const EngineOptions& engine) {
    if (engine.mode == Mode::max_autotune)
      throw Error(ErrorCode::invalid_argument, "this mode does not exist");
    return load_runner(folder, engine);
  };
  const VerifyReport report = verify(options);
  EXPECT_FALSE(report.passed());
  for (const CheckResult& check : report.checks) {
    const bool missing = check.name.find("/max-autotune/") != std::string::npos;
    EXPECT_EQ(check.passed, !missing) << check.name << ": " << check.detail;
    if (missing) {
      EXPECT_NE(check.detail.find("this mode does not exist"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace toto::validate
