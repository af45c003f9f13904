// The settings of a backtest: one table for flags, files, HTTP and Python.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backtest/backtest_spec.h"

namespace toto::backtest {
namespace {

using io::Json;

std::string text_of(const Json& json) {
  io::JsonWriter writer(io::JsonLayout::compact);
  writer.value(json);
  return writer.take();
}

BacktestSpec spec_of(std::string_view json) {
  return read_spec(
      settings_of(io::parse_json(json, "settings"), "settings", ErrorCode::invalid_argument));
}

std::string complaint(std::string_view json) {
  try {
    spec_of(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return {};
}

TEST(BacktestSpec, ReadsBackWhatItWrites) {
  const std::string defaults = text_of(write_spec({}));
  EXPECT_EQ(text_of(write_spec(spec_of(defaults))), defaults);
  const std::string odd = text_of(write_spec(spec_of(
      R"({"data": ["a.csv", "b"], "from": "2024-01", "to": "2024-02-03", "decision_lag": 7,
          "context": 100, "transform": "log", "scale": 12.5, "samples": 64,
          "asset": "crypto", "bars_per_year": 52, "strategies": ["maxdiff", "simple", "simple"],
          "ci_multiplier": 0.5, "tune_offsets": true, "fill": "close", "fee_bps": 2.5,
          "slippage_bps": 0, "borrow_apr": 0.03, "prove_no_lookahead": true, "lag_test": false,
          "model": "m", "mode": "reference", "dtype": "f64", "isa": "reference", "threads": 1,
          "seed": "18446744073709551615", "no_kv_cache": true})")));
  EXPECT_EQ(text_of(write_spec(spec_of(odd))), odd);
  EXPECT_NE(odd.find(R"("windows":null,"from":"2024-01","to":"2024-02-03")"), std::string::npos);
  EXPECT_NE(odd.find(R"("point":"trimmed_mean_0.1","samples":64)"), std::string::npos) << odd;
  EXPECT_NE(odd.find(R"("strategies":["buy-hold","simple","maxdiff"])"), std::string::npos);
  EXPECT_NE(odd.find(R"("seed":"18446744073709551615","no_kv_cache":true})"), std::string::npos);
  const Json written = write_spec({});
  EXPECT_EQ(written.object.size(), spec_fields().size()) << "every field, also the defaults";
}

TEST(BacktestSpec, TheTableIsConsistent) {
  std::set<std::string_view> names;
  for (const SpecField& field : spec_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    const Json value = field.get(BacktestSpec());
    if (value.kind == Json::Kind::null) {
      EXPECT_TRUE(field.nullable) << field.name;
    } else if (value.is_number()) {
      EXPECT_GE(value.real, field.low) << field.name;
      EXPECT_LE(value.real, field.high) << field.name;
    }
    const bool has_flag = !field.of_engine && field.name != "data";
    EXPECT_EQ(field.help.empty(), !has_flag) << field.name;
  }
  const auto strategies = std::ranges::find(spec_fields(), "strategies", &SpecField::name);
  for (const Strategy& strategy : all_strategies()) {
    EXPECT_NE(strategies->flag_help().find(strategy.name), std::string::npos) << strategy.name;
  }
}

TEST(BacktestSpec, TextIsReadAsTheTypeOfTheField) {
  const BacktestSpec spec = spec_of(
      R"({"windows": "7", "fee_bps": "2.5", "tune_offsets": "true", "strategies": "simple, highlow"})");
  EXPECT_EQ(spec.windows, 7);
  EXPECT_EQ(spec.fee_bps, 2.5);
  EXPECT_TRUE(spec.tune_offsets);
  EXPECT_EQ(spec.strategies.size(), 3u);
  const auto from = spec_of(R"({"from": 20240131})").from;
  ASSERT_TRUE(from);
  EXPECT_EQ(from->text, "20240131");
}

TEST(BacktestSpec, WrongValuesAreNamed) {
  EXPECT_EQ(complaint(R"({"windows": 0})"),
            "settings: windows is 0, expected a whole number from 1 to 1000000");
  EXPECT_EQ(complaint(R"({"windows": "many"})"),
            "settings: windows is \"many\", expected a whole number from 1 to 1000000");
  EXPECT_EQ(complaint(R"({"windows": true})"),
            "settings: windows is true, expected a whole number from 1 to 1000000");
  EXPECT_EQ(complaint(R"({"seed": -1})"),
            "settings: seed is -1, expected a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(complaint(R"({"fee_bps": -1})"),
            "settings: fee_bps is -1, expected a number from 0 to 5000");
  EXPECT_EQ(complaint(R"({"slippage_bps": "nan"})"),
            "settings: slippage_bps is \"nan\", expected a number from 0 to 5000");
  EXPECT_EQ(complaint(R"({"fill": "mid"})"), "settings: fill is \"mid\", expected open or close");
  EXPECT_EQ(complaint(R"({"transform": "sqrt"})"),
            "settings: transform is \"sqrt\", expected pct, log or price");
  EXPECT_EQ(complaint(R"({"tune_offsets": 1})"),
            "settings: tune_offsets is 1, expected true or false");
  EXPECT_EQ(complaint(R"({"strategies": [1]})"), "settings: strategies holds 1, expected text");
  EXPECT_EQ(
      complaint(R"({"strategies": "a,,b"})"),
      "settings: strategies is \"a,,b\", expected a comma-separated list without empty parts");
  EXPECT_EQ(
      complaint(R"({"strategies": ["magic"]})")
          .find("settings: strategies: there is no strategy \"magic\", expected buy-hold, simple,"),
      0u);
  EXPECT_EQ(complaint(R"({"widows": 1})"),
            "settings: there is no setting \"widows\"; did you mean windows?");
  EXPECT_EQ(complaint("[]"), "settings is an array of 0, expected an object");
  EXPECT_EQ(complaint(R"({"windows": 3, "to": "2024-01-01"})"),
            "settings: windows and settings: to are both given, expected a number of bars or a "
            "period, not both");
  EXPECT_EQ(complaint(R"({"from": "2024-03-02", "to": "2024-03-01"})"),
            "settings: from is \"2024-03-02\" and settings: to is \"2024-03-01\", expected "
            "settings: from first");
  EXPECT_EQ(complaint(R"({"return_scale": 100})").find("settings: there is no setting"), 0u);
  EXPECT_EQ(complaint(R"({"scale": 0})"),
            "settings: scale is 0, expected auto, or a finite number above 0");
  EXPECT_EQ(complaint(R"({"asset": "bond"})"),
            "settings: asset is \"bond\", expected auto, stock, crypto or fx");
}

TEST(BacktestSpec, LowerSettingsFillGaps) {
  const auto given = [](std::string_view json) {
    return settings_of(io::parse_json(json, "x"), "x", ErrorCode::corrupt_file);
  };
  GivenSettings settings = given(R"({"from": "2024-01-01", "seed": "3", "fee_bps": null})");
  add_lower(settings, given(R"({"windows": 5, "to": "2024-02-01", "seed": "4", "fee_bps": 1})"));
  const BacktestSpec spec = read_spec(settings);
  EXPECT_FALSE(spec.to) << "a new period replaces the old one";
  EXPECT_EQ(spec.seed, 3u);
  EXPECT_EQ(spec.fee_bps, 1);
}

}  // namespace
}  // namespace toto::backtest
