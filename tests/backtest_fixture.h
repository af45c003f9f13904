// Bars and forecasts small enough to check on paper.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "backtest/strategy.h"

namespace toto::backtest {

// How near a figure worked out on paper must be: rounding alone.
inline constexpr double kExact = 1e-12;

struct Row {
  double open, high, low, close;
};

// Days from Monday 2024-01-01 on, every calendar day.
inline tables::Bars make_bars(const std::vector<Row>& rows, std::string symbol = "TEST") {
  constexpr tables::Ticks kMonday = 19'723 * tables::kDay;
  tables::Bars bars;
  bars.symbol = std::move(symbol);
  bars.file = bars.symbol + ".csv";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bars.times.push_back(kMonday + static_cast<tables::Ticks>(i) * tables::kDay);
    bars.lines.push_back(static_cast<std::int64_t>(i) + 2);
    bars.open.push_back(rows[i].open);
    bars.high.push_back(rows[i].high);
    bars.low.push_back(rows[i].low);
    bars.close.push_back(rows[i].close);
  }
  return bars;
}

// Points only; every quantile is the point.
inline BarForecast make_forecast(double close, double low, double high, double open = 100) {
  BarForecast forecast;
  const std::array<double, 4> points = {close, low, high, open};
  for (std::size_t i = 0; i < points.size(); ++i) {
    forecast[i].point = points[i];
    forecast[i].quantiles.fill(points[i]);
  }
  return forecast;
}

}  // namespace toto::backtest
