// `toto backtest` and `toto signal` on made-up bars.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "cli_fixture.h"
#include "tables/timestamps.h"

namespace toto::cli {

class BacktestTest : public CliTest {
 protected:
  // A random walk of daily bars on weekdays, or on all days.
  std::string bars(const std::string& name, int count, unsigned seed, bool weekends = false) {
    std::mt19937 engine(seed);
    std::normal_distribution<double> noise(0, 0.015);
    std::string text = "date,open,high,low,close,volume\n";
    double close = 100;
    tables::Ticks day = 19'723 * tables::kDay;
    for (int i = 0; i < count; ++i, day += tables::kDay) {
      while (!weekends && tables::weekday(day) >= 5) day += tables::kDay;
      const double open = close * std::exp(noise(engine) / 4);
      close = open * std::exp(noise(engine));
      const double high = std::max(open, close) * std::exp(std::abs(noise(engine)) / 2);
      const double low = std::min(open, close) * std::exp(-std::abs(noise(engine)) / 2);
      text += fmt::format("{},{:.4f},{:.4f},{:.4f},{:.4f},1000\n", tables::format_time(day, {}),
                          open, high, low, close);
    }
    file(name, text);
    return path(name);
  }
  Result backtest(std::vector<std::string> more) {
    more.insert(more.begin(), "backtest");
    return run(more, {{"TOTO_CACHE_DIR", path("cache")}});
  }
  std::string written(const std::string& folder, const std::string& name) {
    return contents_of(folder_ / (folder + "/" + name));
  }
};

}  // namespace toto::cli
