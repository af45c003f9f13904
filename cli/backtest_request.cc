#include "backtest_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "backtest_settings.h"
#include "base/error.h"
#include "output.h"

namespace toto::cli {
namespace {

using backtest::Asset;
using io::Json;

constexpr int kDefaultContext = 4096;
constexpr int kMaxWindows = 1'000'000;

// One of two words.
bool is_second(const Choice& choice, std::string_view first, std::string_view second) {
  if (choice.text != first && choice.text != second) {
    fail(ErrorCode::invalid_argument, "{} is {}, expected {} or {}", choice.origin,
         io::quoted(choice.text), first, second);
  }
  return choice.text == second;
}

// -------------------------------------------------------------------------------------- settings

void read_period(const BacktestFlags& flags, backtest::RunOptions& run) {
  if (flags.windows && (flags.from || flags.to)) {
    fail(ErrorCode::invalid_argument,
         "--windows and {} are both given, expected a number of bars or a period, not both",
         flags.from ? "--from" : "--to");
  }
  if (const auto windows = find_choice(flags.windows, "--windows")) {
    run.windows = whole_number(*windows, 1, kMaxWindows);
  }
  if (const auto from = find_choice(flags.from, "--from")) {
    run.from = parse_choice(*from, backtest::parse_bound);
  }
  if (const auto to = find_choice(flags.to, "--to")) {
    run.to = parse_choice(*to, backtest::parse_bound);
  }
  if (run.from && run.to && run.from->first > run.to->last) {
    fail(ErrorCode::invalid_argument, "--from is {} and --to is {}, expected --from first",
         io::quoted(run.from->text), io::quoted(run.to->text));
  }
}

std::vector<backtest::Strategy> read_strategies(const Choice& choice) {
  std::vector<backtest::Strategy> chosen = {backtest::Strategy::buy_hold};  // the benchmark, always
  for (const std::string& name : list_of(choice)) {
    const auto strategy = parse_choice(Choice{name, choice.origin}, backtest::parse_strategy);
    if (std::find(chosen.begin(), chosen.end(), strategy) == chosen.end()) {
      chosen.push_back(strategy);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void read_rules(const BacktestFlags& flags, backtest::RunOptions& run) {
  if (const auto lag = find_choice(flags.decision_lag, "--decision-lag")) {
    run.lag = static_cast<std::size_t>(whole_number(*lag, 1, int{backtest::kMaxLag}));
  }
  if (const auto transform = find_choice(flags.transform, "--transform")) {
    run.transform = parse_choice(*transform, backtest::parse_transform);
  }
  if (const auto scale = find_choice(flags.return_scale, "--return-scale")) {
    run.return_scale = decimal_number(*scale, 1e-3, 1e6);
    if (run.return_scale != 1 && run.transform == backtest::Transform::price) {
      fail(
          ErrorCode::invalid_argument,
          "--return-scale is {} with --transform price, expected pct or log: prices are not scaled",
          io::quoted(scale->text));
    }
  }
  if (const auto asset = find_choice(flags.asset, "--asset"); asset && asset->text != "auto") {
    if (asset->text != "stock" && asset->text != "crypto") {
      fail(ErrorCode::invalid_argument, "--asset is {}, expected auto, stock or crypto",
           io::quoted(asset->text));
    }
    run.asset = asset->text == "stock" ? Asset::stock : Asset::crypto;
  }
  if (const auto year = find_choice(flags.bars_per_year, "--bars-per-year")) {
    run.bars_per_year = decimal_number(*year, 1, 1e8);
  }
  if (const auto strategies = find_choice(flags.strategies, "--strategies")) {
    run.strategies = read_strategies(*strategies);
  }
  if (const auto multiplier = find_choice(flags.ci_multiplier, "--ci-multiplier")) {
    run.ci_multiplier = decimal_number(*multiplier, 0, 1e6);
  }
  if (const auto fill = find_choice(flags.fill, "--fill")) {
    run.fill_at_close = is_second(*fill, "open", "close");
  }
  constexpr double kMaxCostBps = 5000;  // half of the price
  if (const auto fee = find_choice(flags.fee_bps, "--fee-bps")) {
    run.fee_bps = decimal_number(*fee, 0, kMaxCostBps);
  }
  if (const auto slippage = find_choice(flags.slippage_bps, "--slippage-bps")) {
    run.slippage_bps = decimal_number(*slippage, 0, kMaxCostBps);
  }
  if (const auto borrow = find_choice(flags.borrow_apr, "--borrow-apr")) {
    run.borrow_apr = decimal_number(*borrow, 0, 100);
  }
  run.tune_offsets = flags.tune_offsets;
}

// A run that is repeated does not look at the environment: what it leaves open was a default.
ForecastOptions read_forecast(const BacktestFlags& flags) {
  ForecastOptions options;
  const bool repeated = flags.from_results.has_value();
  options.max_context = kDefaultContext;
  if (const auto context = find_choice(flags.context, "--context")) {
    options.max_context = whole_number(*context, 1, std::numeric_limits<int>::max());
  }
  const auto samples = repeated ? find_choice(flags.samples, "--samples")
                                : find_choice(flags.samples, "--samples", {"TOTO_NUM_SAMPLES"});
  if (samples) options.num_samples = whole_number(*samples, 1, kMaxSamples);
  const auto point = repeated ? find_choice(flags.point, "--point")
                              : find_choice(flags.point, "--point", {"TOTO_AGGREGATION_SPEC"});
  const Choice chosen =
      point.value_or(Choice{options.num_samples > 0 ? "trimmed_mean_10" : "median", "--point"});
  options.point = parse_choice(chosen, parse_point);
  return options;
}

Json json_text(std::string text) {
  Json json;
  json.kind = Json::Kind::string;
  json.string = std::move(text);
  return json;
}

Json json_list(const std::vector<std::string>& items) {
  Json json;
  json.kind = Json::Kind::array;
  for (const std::string& item : items) json.array.push_back(json_text(item));
  return json;
}

Json json_number(double number) {
  Json json;
  json.kind = number == std::floor(number) && std::abs(number) < 1e15 ? Json::Kind::integer
                                                                      : Json::Kind::real;
  json.real = number;
  json.integer = json.kind == Json::Kind::integer ? static_cast<std::int64_t>(number) : 0;
  return json;
}

Json json_flag(bool value) {
  Json json;
  json.kind = Json::Kind::boolean;
  json.boolean = value;
  return json;
}

// Every setting in force, defaults too, under the names SettingsFiles knows.
Json describe(const BacktestRequest& request, const BacktestFlags& flags) {
  const backtest::RunOptions& run = request.run;
  const Json null;
  Json settings;
  settings.kind = Json::Kind::object;
  const auto add = [&](std::string name, Json value) {
    settings.object.push_back({std::move(name), std::move(value)});
  };
  const bool period = run.from || run.to;
  std::vector<std::string> strategies;
  strategies.reserve(run.strategies.size());
  for (const backtest::Strategy strategy : run.strategies) {
    strategies.emplace_back(name_of(strategy));
  }
  add("data", json_list(request.data));
  add("windows", period ? null : json_number(run.windows));
  add("from", run.from ? json_text(run.from->text) : null);
  add("to", run.to ? json_text(run.to->text) : null);
  add("decision_lag", json_number(static_cast<double>(run.lag)));
  add("context", json_number(request.forecast.max_context));
  add("transform", json_text(std::string(name_of(run.transform))));
  add("return_scale", json_number(run.return_scale));
  add("point", json_text(name_of(request.forecast.point)));
  add("samples",
      request.forecast.num_samples > 0 ? json_number(request.forecast.num_samples) : null);
  add("asset", json_text(run.asset ? std::string(name_of(*run.asset)) : "auto"));
  add("bars_per_year", run.bars_per_year ? json_number(*run.bars_per_year) : null);
  add("strategies", json_list(strategies));
  add("ci_multiplier", json_number(run.ci_multiplier));
  add("tune_offsets", json_flag(run.tune_offsets));
  add("fill", json_text(run.fill_at_close ? "close" : "open"));
  add("fee_bps", run.fee_bps ? json_number(*run.fee_bps) : null);
  add("slippage_bps", json_number(run.slippage_bps));
  add("borrow_apr", json_number(run.borrow_apr));
  add("prove_no_lookahead", json_flag(request.prove_no_lookahead));
  add("lag_test", json_flag(request.lag_test));
  add("model", json_text(request.engine.model));
  add("mode", json_text(std::string(name_of(request.engine.engine.mode))));
  add("dtype", json_text(std::string(name_of(request.engine.engine.dtype))));
  add("isa", json_text(std::string(name_of(request.engine.engine.isa))));
  add("threads",
      request.engine.engine.threads > 0 ? json_number(request.engine.engine.threads) : null);
  // As text: a seed may be beyond what JSON readers keep exactly.
  add("seed", json_text(fmt::format("{}", request.engine.seed)));
  add("no_kv_cache", json_flag(flags.common.no_kv_cache));
  return settings;
}

}  // namespace

void add_backtest_options(Command& command, BacktestFlags& flags) {
  command
      .positionals("DATA", flags.data,
                   "CSV files of bars (date, open, high, low, close), or folders of them; or "
                   "`compare A.json B.json`",
                   false)
      .option("--windows", "N", flags.windows, "target bars, from the end (default 50)")
      .option("--from", "TIME", flags.from, "first target bar, instead of --windows")
      .option("--to", "TIME", flags.to, "last target bar, inclusive")
      .option("--decision-lag", "D", flags.decision_lag,
              "bars from a decision to the bar it is for, 1 to 64 (default 1)")
      .option("--context", "N", flags.context, "points of history used at most (default 4096)")
      .option("--transform", "T", flags.transform,
              "what is forecast: pct, log or price (default pct)")
      .option(
          "--return-scale", "X", flags.return_scale,
          "what changes are multiplied by before the network sees them, and its answers divided "
          "by: 100 is percent (default 1)")
      .option("--point", "SPEC", flags.point,
              "the predicted price (default median; with --samples trimmed_mean_10)")
      .option("--samples", "N", flags.samples,
              "take everything from N sampled paths (default: exact)")
      .option("--asset", "A", flags.asset,
              "stock, crypto or auto: crypto if a bar falls on a weekend (default auto)")
      .option("--bars-per-year", "N", flags.bars_per_year,
              "what annual figures rest on (default: 252, crypto 365, times the bars of a day)")
      .option("--strategies", "A,B", flags.strategies, "strategies to run (default all)")
      .option("--ci-multiplier", "X", flags.ci_multiplier, "of ci-guard (default 1)")
      .flag("--tune-offsets", flags.tune_offsets,
            "search offsets of the limit prices, on windows before each decision")
      .option("--fill", "F", flags.fill, "open, or close: at the close before (default open)")
      .option("--fee-bps", "X", flags.fee_bps,
              "fee of each side, in basis points (default 5, crypto 15)")
      .option("--slippage-bps", "X", flags.slippage_bps,
              "of each market fill, in basis points (default 5)")
      .option("--borrow-apr", "X", flags.borrow_apr,
              "yearly cost of a short position, 0.03 is 3 % (default 0)")
      .flag("--prove-no-lookahead", flags.prove_no_lookahead,
            "make every decision again with all later rows replaced by noise")
      .flag("--no-lag-test", flags.no_lag_test, "leave out the run with the other decision lag")
      .flag("--no-prefix-reuse", flags.no_prefix_reuse,
            "compute every context from its beginning; slower, the same bits")
      .option("--settings", "FILE", flags.config,
              "settings from a file, `name = value` lines or JSON; flags and variables win over it")
      .option("--from-results", "FILE", flags.from_results,
              "take the settings of an earlier results.json; flags win over it")
      .option("--output-dir", "DIR", flags.output_dir, "where files go (default backtest-out)")
      .option("--json", "FILE", flags.json, "also write results.json here; - is stdout")
      .flag("--progress", flags.progress, "show progress even if stderr is no terminal");
  add_common_options(command, flags.common);
  command.note(kVariablesNote);
}

namespace {

BacktestRequest checked_request(const BacktestFlags& flags) {
  if (flags.data.empty()) {
    fail(ErrorCode::invalid_argument,
         "DATA is required: files of bars, or folders of them; see `toto backtest --help`");
  }
  if (std::find(flags.data.begin(), flags.data.end(), "-") != flags.data.end()) {
    fail(ErrorCode::invalid_argument,
         "DATA is -, expected files or folders: the name of a file is its symbol");
  }
  BacktestRequest request;
  request.data = flags.data;
  read_period(flags, request.run);
  read_rules(flags, request.run);
  request.forecast = read_forecast(flags);
  request.prove_no_lookahead = flags.prove_no_lookahead;
  request.lag_test = !flags.no_lag_test;
  if (flags.output_dir) request.output_dir = *flags.output_dir;
  request.json = flags.json;
  request.reuse_prefixes = !flags.no_prefix_reuse;
  request.progress = flags.progress;
  request.engine = resolve_settings(flags.common);
  request.no_cache = request.engine.no_cache;
  check_available(request.engine);
  request.forecast.seed = request.engine.seed;
  request.settings = describe(request, flags);
  return request;
}

}  // namespace

BacktestRequest make_backtest_request(BacktestFlags flags) {
  SettingsFiles files;
  if (flags.config) files.take_config(flags, *flags.config);
  if (flags.from_results) files.take_results(flags, *flags.from_results);
  try {
    BacktestRequest request = checked_request(flags);
    request.earlier_data = files.earlier_data();
    request.earlier_results = flags.from_results.value_or("");
    return request;
  } catch (const Error& error) {
    files.explain(error);
    throw;
  }
}

}  // namespace toto::cli
