#include "backtest/compare_runs.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "backtest/backtest_files.h"
#include "base/error.h"
#include "base/text.h"
#include "io/atomic_file.h"

namespace toto::backtest {
namespace {

using io::Json;
using State = ComparedFigure::State;

constexpr std::size_t kMaxResultsBytes = std::size_t{256} << 20;
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr double kRounding = 1e-12;  // 0.06 - 0.01 is a little less than 0.05

const Json& require(const Json& parent, std::string_view key, Json::Kind kind,
                    const std::string& path) {
  const Json* found = parent.find(key);
  if (found == nullptr || found->kind != kind) {
    fail(ErrorCode::corrupt_file, "{}: {} is {}, expected the results.json of a backtest", path,
         quoted(key), found == nullptr ? "absent" : io::described(*found));
  }
  return *found;
}

// One side of a figure.
struct Found {
  double value = kAbsent;
  State state = State::absent;
};

Found number(const Json* object, std::string_view key, const std::string& path) {
  const Json* found = object == nullptr ? nullptr : object->find(key);
  if (found == nullptr) return {};
  if (found->kind == Json::Kind::null) return {.state = State::null};
  if (!found->is_number()) {
    fail(ErrorCode::corrupt_file, "{}: {} is {}, expected a number or null", path, quoted(key),
         io::described(*found));
  }
  return {found->real, State::number};
}

ComparedFigure figure(const Found& a, const Found& b) {
  return {.a = a.value, .b = b.value, .state_a = a.state, .state_b = b.state};
}

const Json* descend(const Json* object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (object != nullptr) object = object->find(key);
  }
  return object;
}

Found relative_mae(const Json* symbol, const std::string& path) {
  const Json* close = descend(symbol, {"forecast", "close"});
  const Found base = number(descend(close, {"persistence"}), "mae", path);
  const Found model = number(close, "mae", path);
  if (base.state == State::absent || model.state == State::absent) return {};
  if (model.state == State::null || !(base.value > 0)) return {.state = State::null};
  return {model.value / base.value, State::number};
}

void judge(ComparedStrategy& item, bool in_a, bool in_b) {
  const auto failed = [&](std::string reason) {
    item.verdict = Verdict::fail;
    item.reason = std::move(reason);
  };
  if (!in_a || !in_b) return failed(fmt::format("only in {}", in_a ? "A" : "B"));
  for (const auto& [compared, name] :
       {std::pair(&item.total_return, "total return"), std::pair(&item.sharpe, "Sharpe"),
        std::pair(&item.drawdown, "drawdown")}) {
    if (std::string reason = compared->one_sided(name); !reason.empty()) {
      return failed(std::move(reason));
    }
  }
  const double difference = std::abs(item.total_return.b - item.total_return.a) + kRounding;
  if (difference >= kFailDifference) {
    failed(fmt::format("total return differs by {:.4f}", difference));
  } else if (difference >= kWarnDifference) {
    item.verdict = Verdict::warn;
  }
}

void judge(ComparedForecast& item, bool in_a, bool in_b) {
  item.reason = in_a && in_b ? item.relative_mae.one_sided("close MAE")
                             : fmt::format("only in {}", in_a ? "A" : "B");
  if (!item.reason.empty()) item.verdict = Verdict::fail;
}

// Keys of both, those of `a` first.
std::vector<std::string> all_keys(const Json* a, const Json* b) {
  std::vector<std::string> keys;
  for (const Json* side : {a, b}) {
    if (side == nullptr) continue;
    for (const Json::Member& member : side->object) {
      if (side == a || a == nullptr || a->find(member.first) == nullptr) {
        keys.push_back(member.first);
      }
    }
  }
  return keys;
}

double change_of(const ComparedFigure& item) { return item.b - item.a; }

std::string shown(double value) { return std::isnan(value) ? "-" : fmt::format("{:+.4f}", value); }

std::string_view name_of(Verdict verdict) {
  if (verdict == Verdict::same) return "ok";
  return verdict == Verdict::warn ? "warn" : "fail";
}

}  // namespace

std::string ComparedFigure::one_sided(std::string_view name) const {
  if (state_a == state_b) return {};
  const bool less_in_a = static_cast<int>(state_a) > static_cast<int>(state_b);
  return fmt::format("{} is {} in {} only", name,
                     (less_in_a ? state_a : state_b) == State::null ? "null" : "absent",
                     less_in_a ? "A" : "B");
}

Json read_results(const std::string& path) {
  Json results = io::parse_json(io::read_file(path, kMaxResultsBytes), path);
  const Json& schema = require(results, "schema_version", Json::Kind::integer, path);
  if (schema.integer != kSchemaVersion) {
    fail(ErrorCode::corrupt_file, "{}: schema_version is {}, expected {}", path, schema.integer,
         kSchemaVersion);
  }
  const Json& symbols = require(results, "symbols", Json::Kind::object, path);
  for (const Json::Member& symbol : symbols.object) {
    const Json& strategies = require(symbol.second, "strategies", Json::Kind::object, path);
    for (const Json::Member& strategy : strategies.object) {
      require(strategies, strategy.first, Json::Kind::object, path);
    }
  }
  return results;
}

RunComparison compare(const Json& a, const Json& b, const std::string& path_a,
                      const std::string& path_b) {
  RunComparison comparison;
  const Json* symbols_a = a.find("symbols");
  const Json* symbols_b = b.find("symbols");
  for (const std::string& symbol : all_keys(symbols_a, symbols_b)) {
    const Json* in_a = symbols_a->find(symbol);
    const Json* in_b = symbols_b->find(symbol);
    const Json* strategies_a = descend(in_a, {"strategies"});
    const Json* strategies_b = descend(in_b, {"strategies"});
    for (const std::string& strategy : all_keys(strategies_a, strategies_b)) {
      const Json* side_a = descend(strategies_a, {strategy});
      const Json* side_b = descend(strategies_b, {strategy});
      const auto both = [&](std::string_view key) {
        return figure(number(side_a, key, path_a), number(side_b, key, path_b));
      };
      ComparedStrategy item{.symbol = symbol,
                            .strategy = strategy,
                            .total_return = both("total_return"),
                            .sharpe = both("sharpe"),
                            .drawdown = both("max_drawdown")};
      judge(item, side_a != nullptr, side_b != nullptr);
      comparison.num_warnings += item.verdict == Verdict::warn ? 1 : 0;
      comparison.num_failures += item.verdict == Verdict::fail ? 1 : 0;
      comparison.strategies.push_back(std::move(item));
    }
    // A symbol one side does not have fails here, even if it has no strategy.
    ComparedForecast item{
        .symbol = symbol,
        .relative_mae = figure(relative_mae(in_a, path_a), relative_mae(in_b, path_b))};
    judge(item, in_a != nullptr, in_b != nullptr);
    comparison.num_failures += item.verdict == Verdict::fail ? 1 : 0;
    comparison.forecasts.push_back(std::move(item));
  }
  return comparison;
}

std::string comparison_text(const RunComparison& comparison) {
  std::string text =
      fmt::format("{:<12} {:<18} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", "symbol", "strategy",
                  "return A", "return B", "change", "Sharpe", "drawdown", "verdict");
  for (const ComparedStrategy& item : comparison.strategies) {
    text += fmt::format("{:<12} {:<18} {:>10} {:>10} {:>10} {:>10} {:>10}  {}{}\n",
                        one_line(item.symbol), one_line(item.strategy), shown(item.total_return.a),
                        shown(item.total_return.b), shown(change_of(item.total_return)),
                        shown(change_of(item.sharpe)), shown(change_of(item.drawdown)),
                        name_of(item.verdict), item.reason.empty() ? "" : ": " + item.reason);
  }
  text += fmt::format("\n{:<12} {:>26} {:>10} {:>10}  {}\n", "symbol", "close MAE / persistence: A",
                      "B", "change", "verdict");
  for (const ComparedForecast& item : comparison.forecasts) {
    text += fmt::format("{:<12} {:>26} {:>10} {:>10}  {}{}\n", one_line(item.symbol),
                        shown(item.relative_mae.a), shown(item.relative_mae.b),
                        shown(change_of(item.relative_mae)), name_of(item.verdict),
                        item.reason.empty() ? "" : ": " + item.reason);
  }
  text += fmt::format("\n{}: {} compared, {} warnings (from {}), {} failures (from {})\n",
                      comparison.passed() ? "passed" : "failed", comparison.strategies.size(),
                      comparison.num_warnings, kWarnDifference, comparison.num_failures,
                      kFailDifference);
  return text;
}

std::string comparison_json(const RunComparison& comparison) {
  io::JsonWriter json;
  const auto pair = [&](std::string_view name, const ComparedFigure& item) {
    json.key(name).begin_object().field("a", item.a).field("b", item.b);
    json.field("change", change_of(item)).end_object();
  };
  json.begin_object().field("passed", comparison.passed());
  json.field("warnings", static_cast<std::uint64_t>(comparison.num_warnings));
  json.field("failures", static_cast<std::uint64_t>(comparison.num_failures));
  json.key("strategies").begin_array();
  for (const ComparedStrategy& item : comparison.strategies) {
    json.begin_object().field("symbol", item.symbol).field("strategy", item.strategy);
    pair("total_return", item.total_return);
    pair("sharpe", item.sharpe);
    pair("max_drawdown", item.drawdown);
    json.field("verdict", name_of(item.verdict)).field("reason", item.reason).end_object();
  }
  json.end_array().key("forecasts").begin_array();
  for (const ComparedForecast& item : comparison.forecasts) {
    json.begin_object().field("symbol", item.symbol);
    pair("relative_mae", item.relative_mae);
    json.field("verdict", name_of(item.verdict)).field("reason", item.reason).end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace toto::backtest
