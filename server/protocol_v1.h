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
#include "tables/series_remarks.h"

namespace toto::server {

// An entry of "series". With "future" it is a known variate for the others.
struct V1Entry {
  tables::InputSeries input = {};
  std::vector<float> future = {};
  bool is_known = false;
  std::size_t num_dropped = 0;  // missing values before the first one
};
V1Entry read_entry(const io::Json& value, const std::string& where);

// Variates of one series are aligned at their end; shorter ones are padded in front.
SeriesShape shape_of(std::span<const V1Entry* const> entries);
Series join(std::span<const V1Entry* const> entries, const std::string& id);

PreparedRequest prepare_v1(const io::Json& body, const RequestLimits& limits);

// What a request of the command line's JSON asks for besides its series.
struct V1Request {
  ForecastOptions options = {};
  bool reports_point = false;  // it has "point"
  bool context_given = false;
};
// Takes the options of the table and notes which were given.
V1Request read_request(Fields& fields, const RequestLimits& limits);

// The command line's JSON, with what is said about the series.
HttpResponse answer_v1(const std::vector<std::vector<tables::InputSeries>>& targets,
                       const V1Request& request, const tables::SeriesRemarks& remarks,
                       const ForecastAnswer& answer);

}  // namespace toto::server
