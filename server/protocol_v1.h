// The native JSON protocol: series and the command line's options in, the command line's JSON out.
//
//   {"series": [{"id": "BTCUSD", "start": "2024-01-01", "freq": "D", "values": [1, 2, null]}],
//    "horizon": 64, "quantiles": [0.1, 0.9]}
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "request_fields.h"
#include "tables/series_file.h"

namespace toto::server {

// An entry of "series". With "future" it is a known variate for the others.
struct V1Entry {
  tables::InputSeries input = {};
  std::vector<float> future = {};
  bool is_known = false;
};
V1Entry read_entry(const io::Json& value, const std::string& where);

// Variates of one series are aligned at their end; shorter ones are padded in front.
SeriesShape shape_of(std::span<const V1Entry* const> entries);
Series join(std::span<const V1Entry* const> entries, const std::string& id);

PreparedRequest prepare_v1(const io::Json& body, const RequestLimits& limits);

// The command line's JSON. `reports_point`: the request has "point".
HttpResponse answer_v1(const std::vector<std::vector<tables::InputSeries>>& targets,
                       const ForecastOptions& options, bool reports_point,
                       const ForecastAnswer& answer);

}  // namespace toto::server
