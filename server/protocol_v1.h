// Our own JSON: the series and the option names of the command line in, its JSON out.
//
//   {"series": [{"id": "BTCUSD", "start": "2024-01-01", "freq": "D", "values": [1, 2, null]}],
//    "horizon": 64, "quantiles": [0.1, 0.9]}
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/series_file.h"
#include "plan.h"

namespace toto::server {

// An entry of "series". With "future" it is a known variate of the others.
struct V1Entry {
  io::InputSeries input = {};
  std::vector<float> future = {};
  bool is_known = false;
};
V1Entry read_entry(const io::Json& value, const std::string& where);

// Variates of one series end together; shorter ones begin later.
SeriesShape shape_of(std::span<const V1Entry* const> entries);
Series join(std::span<const V1Entry* const> entries, const std::string& id);

Plan plan_v1(const io::Json& body, const Limits& limits);

// The command's JSON for these variates. `reports_point`: a "point" was asked for.
Response answer_v1(const std::vector<std::vector<io::InputSeries>>& targets,
                   const ForecastOptions& options, bool reports_point, const Answer& answer);

}  // namespace toto::server
