#include "backtest/backtest_files.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <vector>

#include "backtest/universe.h"
#include "io/csv.h"

namespace toto::backtest {
namespace {

using io::JsonWriter;

void write_metrics(JsonWriter& json, const TradingMetrics& metrics) {
  const auto count = [](std::size_t number) { return static_cast<std::uint64_t>(number); };
  json.begin_object()
      .field("total_return", metrics.total_return)
      .field("cagr", metrics.cagr)
      .field("volatility", metrics.volatility)
      .field("sharpe", metrics.sharpe)
      .field("sortino", metrics.sortino)
      .field("max_drawdown", metrics.max_drawdown)
      .field("max_drawdown_bars", count(metrics.max_drawdown_bars))
      .field("calmar", metrics.calmar)
      .field("exposure", metrics.exposure)
      .field("turnover", metrics.turnover)
      .field("trades", count(metrics.trades))
      .field("win_rate", metrics.win_rate)
      .field("profit_factor", metrics.profit_factor)
      .field("average_trade", metrics.average_trade)
      .field("fees_paid", metrics.fees_paid)
      .field("ambiguous_bars", count(metrics.ambiguous_bars))
      .field("beta", metrics.beta)
      .field("alpha", metrics.alpha)
      .field("information_ratio", metrics.information_ratio)
      .field("probabilistic_sharpe", metrics.probabilistic_sharpe)
      .field("var_95", metrics.var_95)
      .field("cvar_95", metrics.cvar_95)
      .end_object();
}

void write_errors(JsonWriter& json, const ForecastErrors& errors) {
  json.field("mae", errors.mae)
      .field("rmse", errors.rmse)
      .field("smape", errors.smape)
      .field("mase", errors.mase)
      .field("wql", errors.wql);
}

void write_accuracy(JsonWriter& json, const ForecastAccuracy& accuracy) {
  json.begin_object();
  write_errors(json, accuracy.model);
  json.field("coverage_80", accuracy.coverage_80)
      .field("direction_accuracy", accuracy.direction_accuracy)
      .field("dm_p_value", accuracy.dm_p_value);
  json.key("persistence").begin_object();
  write_errors(json, accuracy.persistence);
  json.end_object().end_object();
}

void write_symbol_return(JsonWriter& json, std::string_view name, const SymbolReturn& item) {
  json.key(name).begin_object().field("symbol", item.symbol);
  json.field("total_return", item.total_return).end_object();
}

void write_universe(JsonWriter& json, std::span<const SymbolResult> results) {
  const auto num_symbols = static_cast<double>(results.size());
  json.begin_object().field("symbols", static_cast<std::uint64_t>(results.size()));
  json.key("strategies").begin_object();
  for (const UniverseRow& row : universe_of(results)) {
    json.key(row.strategy->name).begin_object();
    json.field("median_total_return", row.median_return)
        .field("mean_total_return", row.mean_return)
        .field("beats_buy_hold", static_cast<double>(row.num_ahead) / num_symbols)
        .field("trades", static_cast<std::uint64_t>(row.num_trades));
    write_symbol_return(json, "best", row.best);
    write_symbol_return(json, "worst", row.worst);
    json.key("portfolio");
    if (row.portfolio) {
      json.begin_object()
          .field("total_return", row.portfolio->total_return)
          .field("cagr", row.portfolio->cagr)
          .field("volatility", row.portfolio->volatility)
          .field("sharpe", row.portfolio->sharpe)
          .field("max_drawdown", row.portfolio->max_drawdown)
          .end_object();
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_object().end_object();
}

// Times of several files in one column: points of the world's clock where the files name a zone.
struct Moment {
  tables::Ticks utc = 0;
  bool operator<(const Moment& other) const { return utc < other.utc; }
};

Moment moment_of(const tables::Bars& bars, std::size_t bar) {
  const bool shifted = bars.style.zone == tables::TimeStyle::Zone::offset;
  return {bars.times[bar] - (shifted ? bars.style.offset_minutes * tables::kMinute : 0)};
}

}  // namespace

std::string results_json(std::span<const SymbolResult> results, const tables::EngineBlock& engine,
                         const BacktestSpec& spec, std::span<const std::string> warnings,
                         std::span<const DataFile> files) {
  JsonWriter json;
  json.begin_object().field("schema_version", kSchemaVersion);
  json.key("engine");
  tables::write_engine(json, engine);
  json.field("settings", write_spec(spec));
  json.key("warnings").begin_array();
  for (const std::string& warning : warnings) json.value(warning);
  json.end_array();
  json.key("data");
  write_data_files(json, files);
  json.key("universe");
  write_universe(json, results);
  json.key("symbols").begin_object();
  for (const SymbolResult& result : results) {
    json.key(result.plan.bars->symbol).begin_object();
    const SymbolPlan& plan = result.plan;
    json.field("asset", name_of(plan.rules.asset))
        .field("incoherent_bars", static_cast<std::uint64_t>(result.incoherent_bars))
        .field("bars_per_year", plan.bars_per_year)
        .field("first_target", plan.bars->time_text(plan.first))
        .field("last_target", plan.bars->time_text(plan.first + plan.count - 1));
    json.key("strategies").begin_object();
    for (const StrategyResult& strategy : result.strategies) {
      json.key(strategy.strategy->name);
      write_metrics(json, strategy.metrics);
    }
    json.end_object();
    json.key("forecast").begin_object();
    for (const tables::Target target : tables::kTargets) {
      json.key(name_of(target));
      write_accuracy(json, result.accuracy[static_cast<std::size_t>(target)]);
    }
    json.end_object().end_object();
  }
  json.end_object().end_object();
  return json.take();
}

void write_forecasts(std::span<const SymbolResult> results, const TextSink& sink) {
  std::string text = "symbol,decision_time,target_time,target,point";
  for (std::size_t i = 0; i < kNumLevels; ++i) {
    text += "," + tables::quantile_name(level(i));
  }
  text += ",actual\n";
  for (const SymbolResult& result : results) {
    const tables::Bars& bars = *result.plan.bars;
    const std::string symbol = io::csv_field(bars.symbol);
    for (std::size_t k = 0; k < result.forecasts.size(); ++k) {
      const std::size_t bar = result.plan.first + k;
      const std::string times =
          bars.time_text(bar - result.plan.rules.lag) + "," + bars.time_text(bar);
      for (const tables::Target target : tables::kTargets) {
        const TargetForecast& forecast = forecast_of(result.forecasts[k], target);
        fmt::format_to(std::back_inserter(text), "{},{},{},{}", symbol, times, name_of(target),
                       forecast.point);
        for (const double quantile : forecast.quantiles) {
          fmt::format_to(std::back_inserter(text), ",{}", quantile);
        }
        fmt::format_to(std::back_inserter(text), ",{}\n", bars.prices(target)[bar]);
      }
    }
    sink(text);
    text.clear();
  }
  sink(text);  // the header, where there is no symbol
}

void write_trades(std::span<const SymbolResult> results, const TextSink& sink) {
  std::string text =
      "symbol,strategy,side,entry_time,entry_price,exit_time,exit_price,fee,return\n";
  for (const SymbolResult& result : results) {
    const tables::Bars& bars = *result.plan.bars;
    const std::string symbol = io::csv_field(bars.symbol);
    for (const StrategyResult& strategy : result.strategies) {
      for (const Trade& trade : strategy.simulation.trades) {
        fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{}\n", symbol,
                       strategy.strategy->name, name_of(trade.side),
                       bars.time_text(trade.entry_bar), trade.entry_price,
                       bars.time_text(trade.exit_bar), trade.exit_price, trade.fee,
                       trade.net_return);
      }
    }
    sink(text);
    text.clear();
  }
  sink(text);
}

void write_returns(std::span<const SymbolResult> results, const TextSink& sink) {
  std::string text = "date";
  std::map<Moment, std::string> rows;  // and how the first symbol that has it writes it
  tables::TimeStyle widest;
  for (const SymbolResult& result : results) {
    const tables::TimeStyle& style = result.plan.bars->style;
    widest.has_clock |= style.has_clock;
    widest.has_seconds |= style.has_seconds;
    widest.fraction_digits = std::max(widest.fraction_digits, style.fraction_digits);
  }
  for (const SymbolResult& result : results) {
    const tables::Bars& bars = *result.plan.bars;
    tables::TimeStyle style = bars.style;
    if (!style.steps && widest.has_clock) {  // one form for all, or readers guess wrong
      style.month_only = false;
      style.has_clock = true;
      style.has_seconds = widest.has_seconds;
      style.fraction_digits = widest.fraction_digits;
    }
    for (const StrategyResult& strategy : result.strategies) {
      text += "," + io::csv_field(fmt::format("{}:{}", bars.symbol, strategy.strategy->name));
    }
    for (std::size_t k = 0; k < result.plan.count; ++k) {
      const std::size_t bar = result.plan.first + k;
      rows.try_emplace(moment_of(bars, bar), tables::format_time(bars.times[bar], style));
    }
  }
  text += "\n";
  std::vector<std::size_t> next(results.size(), 0);  // target bar each symbol is at
  for (const auto& [moment, time] : rows) {
    text += time;
    for (std::size_t s = 0; s < results.size(); ++s) {
      const SymbolPlan& plan = results[s].plan;
      const bool here =
          next[s] < plan.count && moment_of(*plan.bars, plan.first + next[s]).utc == moment.utc;
      for (const StrategyResult& strategy : results[s].strategies) {
        text += ",";
        if (here) {
          fmt::format_to(std::back_inserter(text), "{}", strategy.simulation.returns[next[s]]);
        }
      }
      if (here) ++next[s];
    }
    text += "\n";
    sink(text);
    text.clear();
  }
  sink(text);
}

}  // namespace toto::backtest
