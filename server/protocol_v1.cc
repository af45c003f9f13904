#include "protocol_v1.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/forecast_file.h"
#include "tables/series_grid.h"

namespace toto::server {
namespace {

using io::Json;

// The time of the last value and the frequency. `start` is the time of the first value, `end` of
// the last, which is exact even with holidays in between.
std::shared_ptr<const tables::TimeAxis> make_axis(const Json* start, const Json* end,
                                                  const Json* freq, std::size_t length,
                                                  const std::string& where) {
  tables::TimeAxis axis;
  if (freq != nullptr) {
    axis.frequency = tables::parse_frequency(text_of(*freq, where + ".freq"), where + ".freq");
  }
  if (start != nullptr && end != nullptr) {
    fail(ErrorCode::invalid_argument, "{} has a start and an end, expected one of them", where);
  }
  const Json* known = start != nullptr ? start : end;
  if (known == nullptr) {
    if (freq != nullptr) {
      fail(ErrorCode::invalid_argument,
           "{}.freq is given without {}.start or {}.end, expected both or none", where, where,
           where);
    }
    return std::make_shared<const tables::TimeAxis>(std::move(axis));
  }
  const std::string name = where + (start != nullptr ? ".start" : ".end");
  tables::TimeColumn clock;
  tables::Ticks time = 0;
  const std::string complaint = clock.read(text_of(*known, name), time);
  if (!complaint.empty()) fail(ErrorCode::invalid_argument, "{}: {}", name, complaint);
  axis.style = clock.style();
  if (freq == nullptr && axis.style.steps) {
    return std::make_shared<const tables::TimeAxis>(std::move(axis));
  }
  if (freq == nullptr) {
    fail(ErrorCode::invalid_argument, "{} is given without {}.freq, expected both", name, where);
  }
  if (axis.style.steps) {
    fail(ErrorCode::invalid_argument, "{} is a step number, expected a date with a freq", name);
  }
  axis.frequency = tables::anchored(axis.frequency, {&time, 1});
  const std::int64_t steps = start != nullptr ? static_cast<std::int64_t>(length) - 1 : 0;
  axis.times = {tables::advance(axis.frequency, time, steps)};
  tables::widen(axis.style, axis.times.back());
  return std::make_shared<const tables::TimeAxis>(std::move(axis));
}

// The last of the timestamps, one per value: the `end`.
const Json* last_of(const Json& timestamps, std::size_t length, const std::string& where) {
  const std::vector<Json>& items = list_of(timestamps, where);
  if (items.size() != length) {
    fail(ErrorCode::invalid_argument, "{} has {} times, expected one for each of the {} values",
         where, items.size(), length);
  }
  tables::TimeColumn clock;
  tables::Ticks before = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", where, i);
    tables::Ticks time = 0;
    const std::string complaint = clock.read(text_of(items[i], name), time);
    if (!complaint.empty()) fail(ErrorCode::invalid_argument, "{}: {}", name, complaint);
    if (i > 0 && time <= before) {
      fail(ErrorCode::invalid_argument, "{} is {}, expected a later time than the one before", name,
           quoted(items[i].string));
    }
    before = time;
  }
  return items.empty() ? nullptr : &items.back();
}

void check_futures(std::span<const V1Entry* const> known, int horizon) {
  for (const V1Entry* entry : known) {
    if (entry->future.size() == static_cast<std::size_t>(horizon)) continue;
    fail(ErrorCode::invalid_argument,
         "the series {} has {} values in \"future\", expected one for each of the {} steps",
         quoted(entry->input.id), entry->future.size(), horizon);
  }
}

}  // namespace

SeriesShape shape_of(std::span<const V1Entry* const> entries) {
  SeriesShape shape{.num_variates = entries.size()};
  for (const V1Entry* entry : entries) {
    shape.length = std::max(shape.length, entry->input.values.size());
    shape.num_exogenous += entry->is_known ? 1 : 0;
  }
  return shape;
}

Series join(std::span<const V1Entry* const> entries, const std::string& id) {
  const SeriesShape shape = shape_of(entries);
  Series series;
  series.id = id;
  series.num_variates = static_cast<int>(shape.num_variates);
  series.num_exogenous = static_cast<int>(shape.num_exogenous);
  series.values.reserve(shape.num_variates * shape.length);
  for (const V1Entry* entry : entries) {
    const std::vector<float>& values = entry->input.values;
    series.values.insert(series.values.end(), shape.length - values.size(), NAN);
    series.values.insert(series.values.end(), values.begin(), values.end());
    series.future_exogenous.insert(series.future_exogenous.end(), entry->future.begin(),
                                   entry->future.end());
  }
  return series;
}

V1Entry read_entry(const Json& value, const std::string& where) {
  Fields fields(value, where);
  V1Entry entry;
  entry.input.id = id_of(fields.take("id"), fields.where("id"));
  const Json& values = fields.need("values");
  const Json* start = fields.take("start");
  const Json* end = fields.take("end");
  const Json* timestamps = fields.take("timestamps");
  const Json* freq = fields.take("freq");
  const Json* future = fields.take("future");
  fields.finish();
  entry.input.values = values_of(values, fields.where("values"));
  if (timestamps != nullptr) {
    if (start != nullptr || end != nullptr) {
      fail(ErrorCode::invalid_argument,
           "{} has timestamps and a start or end, expected one of them", where);
    }
    end = last_of(*timestamps, entry.input.values.size(), fields.where("timestamps"));
  }
  entry.input.axis = make_axis(start, end, freq, entry.input.values.size(), where);
  entry.num_dropped = entry.input.values.size();
  drop_leading_missing(entry.input.values);
  entry.num_dropped -= entry.input.values.size();
  if (future != nullptr) {
    entry.future = values_of(*future, fields.where("future"));
    entry.is_known = true;
  }
  return entry;
}

PreparedRequest prepare_v1(const Json& body, const RequestLimits& limits) {
  Fields fields(body, "");
  PreparedRequest prepared;
  const std::vector<Json>& items = list_of(fields.need("series"), "series");
  if (items.size() > limits.max_series) {
    fail(ErrorCode::invalid_argument, "the request has {} series, expected at most {}",
         items.size(), limits.max_series);
  }
  const V1Request request = read_request(fields, limits);
  prepared.options = request.options;
  const Json* multivariate = fields.take("multivariate");
  const bool together = multivariate != nullptr && flag_of(*multivariate, "multivariate");
  fields.finish();

  std::vector<V1Entry> entries;
  std::vector<const V1Entry*> targets, known;
  entries.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    V1Entry& entry = entries.emplace_back(read_entry(items[i], fmt::format("series[{}]", i)));
    if (entry.input.id.empty()) entry.input.id = fmt::format("series_{}", i + 1);
  }
  for (const V1Entry& entry : entries) (entry.is_known ? known : targets).push_back(&entry);
  check_futures(known, prepared.options.horizon);
  for (const V1Entry* entry : targets) check_last_time(entry->input, prepared.options.horizon);
  if (targets.empty() && !known.empty()) {
    fail(ErrorCode::invalid_argument,
         "series has none without a \"future\", expected at least one "
         "to forecast");
  }
  // Every series gets a copy of the known variates: their size is checked before they are copied.
  const std::size_t width = together ? targets.size() : 1;
  const SeriesShape known_shape = shape_of(known);
  std::vector<SeriesShape> shapes;
  for (std::size_t i = 0; i < targets.size(); i += width) {
    SeriesShape& shape = shapes.emplace_back(shape_of(std::span(targets).subspan(i, width)));
    shape.num_variates += known_shape.num_variates;
    shape.length = std::max(shape.length, known_shape.length);
    shape.num_exogenous = known_shape.num_exogenous;
  }
  prepared.bytes_too_large_here = check_size(limits, shapes, prepared.options);
  if (prepared.bytes_too_large_here > 0) return prepared;
  tables::SeriesRemarks remarks(request.options, request.context_given);
  for (const V1Entry& entry : entries) {
    remarks.add(entry.input.id, entry.input.values, entry.num_dropped);
  }
  std::vector<std::vector<tables::InputSeries>> reported;
  for (std::size_t i = 0; i < targets.size(); i += width) {
    const auto own = std::span(targets).subspan(i, width);
    std::vector<const V1Entry*> all(own.begin(), own.end());
    all.insert(all.end(), known.begin(), known.end());
    prepared.series.push_back(join(all, own.front()->input.id));
    std::vector<tables::InputSeries>& names = reported.emplace_back();
    for (const V1Entry* entry : own) {
      names.push_back({.id = entry->input.id, .values = {}, .axis = entry->input.axis});
    }
  }
  prepared.write_answer = [names = std::move(reported), request,
                           remarks = std::move(remarks)](const ForecastAnswer& answer) {
    return answer_v1(names, request, remarks, answer);
  };
  return prepared;
}

V1Request read_request(Fields& fields, const RequestLimits& limits) {
  V1Request request{.reports_point = fields.has("point"), .context_given = fields.has("context")};
  request.options.seed = limits.seed;
  take_options(fields, limits, request.options);
  return request;
}

HttpResponse answer_v1(const std::vector<std::vector<tables::InputSeries>>& targets,
                       const V1Request& request, const tables::SeriesRemarks& remarks,
                       const ForecastAnswer& answer) {
  const ForecastOptions& options = request.options;
  tables::ForecastHeader header{.engine = answer.engine,
                                .horizon = options.horizon,
                                .quantiles = options.quantiles,
                                .warnings = answer.model_warnings};
  for (auto& sentences : {remarks.about_data(), remarks.about_model(answer.facts, options)}) {
    header.warnings.insert(header.warnings.end(), sentences.begin(), sentences.end());
  }
  HttpResponse response;
  const auto writer =
      tables::make_file_writer(tables::OutputFormat::json, std::move(header),
                               [&response](std::string_view text) { response.body += text; });
  const auto horizon = static_cast<std::size_t>(options.horizon);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (std::size_t variate = 0; variate < targets[i].size(); ++variate) {
      const tables::InputSeries& target = targets[i][variate];
      const std::vector<std::string> times = tables::future_timestamps(target, options.horizon);
      tables::ForecastEntry entry =
          tables::make_entry(answer.forecasts[i], static_cast<int>(variate), target.id, times);
      if (request.reports_point) {
        entry.point = std::span(answer.forecasts[i].point).subspan(variate * horizon, horizon);
      }
      writer->add(entry);
    }
  }
  writer->finish(answer.timings);
  return response;
}

}  // namespace toto::server
