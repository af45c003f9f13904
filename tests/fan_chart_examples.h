// Fan charts to test with, and a way to find a part of the page made from them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/fan_chart.h"

namespace toto::report {

inline constexpr std::int64_t kDay = 86'400;
inline constexpr std::int64_t kStart = 1'704'067'200;  // Monday, 1 January 2024

// Daily values from kStart on; the bands lie 1.3 and 0.7 times `spread` around the median.
inline FanChart example(std::vector<float> history, std::vector<float> median, float spread,
                        bool dated = true) {
  FanChart chart;
  chart.title = "Example";
  chart.history = std::move(history);
  chart.median = std::move(median);
  for (const auto& [label, width] : {std::pair("80 %", 1.3F), std::pair("50 %", 0.7F)}) {
    FanChart::Band band{label, {}, {}};
    for (const float value : chart.median) {
      band.low.push_back(value - width * spread);
      band.high.push_back(value + width * spread);
    }
    chart.bands.push_back(std::move(band));
  }
  std::int64_t time = kStart;
  for (std::size_t i = 0; dated && i < chart.history.size(); ++i, time += kDay) {
    chart.history_times.push_back(time);
  }
  for (std::size_t i = 0; dated && i < chart.median.size(); ++i, time += kDay) {
    chart.forecast_times.push_back(time);
  }
  return chart;
}

inline std::vector<float> wave(std::size_t count, double scale = 1, double offset = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(offset + scale * std::sin(static_cast<double>(i) * 0.37));
  }
  return values;
}

inline std::string html_of(const FanChart& chart) { return fan_chart_html({&chart, 1}, "Page"); }

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The text between the n-th `before` and the `after` that follows it.
inline std::string between(const std::string& text, const std::string& before,
                           const std::string& after, int n = 0) {
  std::size_t start = text.find(before);
  for (; n > 0; --n) start = text.find(before, start + 1);
  if (start == std::string::npos) return "";
  start += before.size();
  return text.substr(start, text.find(after, start) - start);
}

}  // namespace toto::report
