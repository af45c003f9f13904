// Signals as JSON and as text.
#include <fmt/format.h>

#include <algorithm>

#include "backtest/report_parts.h"
#include "backtest/signal.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

using io::JsonWriter;
using tables::Target;

constexpr std::array<Target, 3> kShown = {Target::close, Target::high, Target::low};

void write_order(JsonWriter& json, const Strategy& strategy, const Order& order, double share,
                 bool fill_at_close) {
  json.begin_object()
      .field("side", name_of(order.side))
      .field("entry", order.at_limit  ? "limit"
                      : fill_at_close ? "close_before"
                                      : "open")
      .field("limit_price", order.entry)  // NaN is null
      .field("take_profit", order.take_profit)
      .field("exit", exit_of(strategy, order))
      .field("share", share)
      .end_object();
}

void write_strategy(JsonWriter& json, const StrategySignal& signal, bool fill_at_close) {
  json.begin_object().field("side", side_of(signal));
  json.key("orders").begin_array();
  for (int leg = 0; leg < signal.orders.num_legs; ++leg) {
    const Order& order = signal.orders.legs[static_cast<std::size_t>(leg)];
    if (order.side == Side::flat) continue;
    write_order(json, *signal.strategy, order, signal.orders.share, fill_at_close);
  }
  json.end_array().field("why", signal.reason).end_object();
}

void write_symbol(JsonWriter& json, const SymbolSignal& signal) {
  json.begin_object()
      .field("asset", name_of(signal.asset))
      .field("last_time", signal.last_time)
      .field("last_price", signal.last_price)
      .field("target_time", signal.target_time)
      .field("probability_up", signal.probability_up);
  json.key("forecast").begin_object();
  for (const Target target : kShown) {
    const TargetForecast& forecast = forecast_of(signal.forecast, target);
    json.key(name_of(target))
        .begin_object()
        .field("point", forecast.point)
        .field("0.1", forecast.quantiles.front())
        .field("0.9", forecast.quantiles.back())
        .end_object();
  }
  json.end_object().key("strategies").begin_object();
  for (const StrategySignal& strategy : signal.strategies) {
    json.key(strategy.strategy->name);
    write_strategy(json, strategy, signal.fill_at_close);
  }
  json.end_object().end_object();
}

// Columns as wide as their widest cell; the last one is not padded.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t num_words) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t width = i + 1 == row.size() ? 0 : widths[i];
      line += i < num_words ? fmt::format(" {:<{}}", row[i], width)
                            : fmt::format(" {:>{}}", row[i], widths[i]);
      line += " ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string orders_table(const SymbolSignal& signal) {
  std::vector<std::vector<std::string>> rows = {
      {"strategy", "side", "entry", "take-profit", "exit", "why"}};
  for (const StrategySignal& strategy : signal.strategies) {
    std::string name(strategy.strategy->name), why = strategy.reason;
    for (int leg = 0; leg < strategy.orders.num_legs; ++leg) {
      const Order& order = strategy.orders.legs[static_cast<std::size_t>(leg)];
      rows.push_back({name, std::string(name_of(order.side)),
                      or_dash(entry_of(order, signal.fill_at_close)), take_profit_of(order),
                      or_dash(exit_of(*strategy.strategy, order)), why});
      name = why = "";  // once for both legs
    }
  }
  return aligned(rows, 6);
}

}  // namespace

std::string side_of(const StrategySignal& signal) {
  const auto& [legs, num_legs, share] = signal.orders;
  const bool both =
      num_legs == 2 && legs[0].side != Side::flat && legs[1].side == opposite(legs[0].side);
  return both ? "both" : std::string(name_of(legs[0].side));
}

std::string entry_of(const Order& order, bool fill_at_close) {
  if (order.side == Side::flat) return {};
  if (order.at_limit) return "limit " + price(order.entry);
  return fill_at_close ? "market at the close before" : "market at the open";
}

std::string take_profit_of(const Order& order) {
  const bool has = order.side != Side::flat && order.take_profit == order.take_profit;
  return has ? price(order.take_profit) : "-";
}

std::string exit_of(const Strategy& strategy, const Order& order) {
  if (order.side == Side::flat) return {};
  if (strategy.kind == Strategy::Kind::holding) return "at the open where the side changes";
  return order.take_profit == order.take_profit ? "take-profit, else at the close" : "at the close";
}

std::string signal_json(std::span<const SymbolSignal> signals, const tables::EngineBlock& engine,
                        const PreparedBacktest& prepared) {
  JsonWriter json;
  json.begin_object().field("schema_version", kSchemaVersion);
  json.key("engine");
  tables::write_engine(json, engine);
  io::Json settings = write_spec(prepared.spec);
  std::erase_if(settings.object, [](const auto& member) { return !is_of_signal(member.first); });
  json.field("settings", settings);
  io::write_texts(json, "warnings", prepared.warnings());
  json.key("data");
  write_data_files(json, prepared.files);
  json.key("symbols").begin_object();
  for (const SymbolSignal& signal : signals) {
    json.key(signal.symbol);
    write_symbol(json, signal);
  }
  json.end_object().end_object();
  return json.take();
}

std::string signal_text(std::span<const SymbolSignal> signals) {
  std::string text;
  for (const SymbolSignal& signal : signals) {
    text += fmt::format("{}, {}: for {}, decided after {}\n", one_line(signal.symbol),
                        name_of(signal.asset), signal.target_time, signal.last_time);
    text += fmt::format("  last close {}, probability of a higher close {}\n",
                        price(signal.last_price), share(signal.probability_up, 1));
    std::vector<std::vector<std::string>> rows = {{"predicted", "point", "10 %", "90 %"}};
    for (const Target target : kShown) {
      const TargetForecast& forecast = forecast_of(signal.forecast, target);
      rows.push_back({std::string(name_of(target)), price(forecast.point),
                      price(forecast.quantiles.front()), price(forecast.quantiles.back())});
    }
    text += aligned(rows, 1) + orders_table(signal) + "\n";
  }
  return text;
}

}  // namespace toto::backtest
