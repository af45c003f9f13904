#include "eval/eval_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "eval/eval_rows.h"
#include "io/json.h"

namespace toto::eval {
namespace {

constexpr std::size_t kMaxSeriesLines = 20;  // of one data set in the table
constexpr std::size_t kMaxNameWidth = 40;

// ------------------------------------------------------------------------------------------ JSON

void write_figure(io::JsonWriter& json, std::string_view name, std::optional<double> value) {
  json.key(name);
  value ? json.value(*value) : json.null();
}

void write_metrics(io::JsonWriter& json, const Scores& scores) {
  json.key("metrics").begin_object();
  for (const Contender contender : kContenders) {
    const Metrics metrics = scores.metrics(contender);
    json.key(key_of(contender)).begin_object();
    write_figure(json, "mase", metrics.mase);
    write_figure(json, "wql", metrics.wql);
    write_figure(json, "crps", metrics.crps);
    write_figure(json, "mae", metrics.mae);
    write_figure(json, "smape", metrics.smape);
    write_figure(json, "coverage_50", metrics.coverage_50);
    write_figure(json, "coverage_80", metrics.coverage_80);
    json.end_object();
  }
  json.end_object();
}

void write_ratios(io::JsonWriter& json, const Ratios& ratios) {
  write_figure(json, "mase", ratios.mase);
  write_figure(json, "wql", ratios.wql);
  write_figure(json, "crps", ratios.crps);
  write_figure(json, "mae", ratios.mae);
}

// Geometric means, `mean_to(baseline)` for each of them, and how many ratios of WQL they are of.
template <typename MeanTo>
void write_means(io::JsonWriter& json, std::string_view name, const MeanTo& mean_to) {
  json.key(name).begin_object();
  for (const Contender baseline : kBaselines) {
    const RatioMean mean = mean_to(baseline);
    json.key(key_of(baseline)).begin_object();
    write_ratios(json, mean.mean());
    json.field("count", static_cast<std::uint64_t>(mean.num_wql()));
    json.end_object();
  }
  json.end_object();
}

void write_result(io::JsonWriter& json, const Scores& scores) {
  json.field("windows", scores.of(Contender::model).windows);
  json.field("steps", scores.of(Contender::model).steps);
  write_metrics(json, scores);
  json.key("ratios").begin_object();
  for (const Contender baseline : kBaselines) {
    json.key(key_of(baseline)).begin_object();
    write_ratios(json, scores.ratios_to(baseline));
    json.end_object();
  }
  json.end_object();
}

void write_dataset(io::JsonWriter& json, const DatasetResult& result,
                   const tables::TextSink& sink) {
  json.begin_object();
  json.field("name", result.name).field("file", result.file);
  json.field("description", result.description);
  json.field("num_series", static_cast<std::uint64_t>(result.series.size()));
  write_result(json, result.total);
  write_means(json, "series_geometric_mean",
              [&](Contender baseline) { return result.series_mean(baseline); });
  json.key("skipped").begin_array();
  for (const SkippedSeries& skipped : result.skipped) {
    json.begin_object().field("id", skipped.id).field("reason", skipped.reason).end_object();
  }
  json.end_array();
  json.key("series").begin_array();
  for (const SeriesResult& series : result.series) {
    json.begin_object().field("id", series.id).field("season", series.season);
    write_result(json, series.scores);
    json.end_object();
    sink(json.drain());
  }
  json.end_array();
  json.end_object();
}

// ----------------------------------------------------------------------------------------- table

std::size_t width_of(std::string_view text) {  // in code points
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string short_name(std::string_view text) {
  std::string name = one_line(text);
  if (width_of(name) <= kMaxNameWidth) return name;
  std::size_t end = 0;
  for (std::size_t i = 0; i < kMaxNameWidth; ++i) end += utf8_length(name, end);
  return name.substr(0, end) + "...";
}

// The first column to the left, the others to the right.
std::string aligned(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

RatioMean EvalReport::overall(Contender baseline) const {
  RatioMean mean;
  for (const DatasetResult& result : datasets) mean.add(result.total.ratios_to(baseline));
  return mean;
}

std::string_view key_of(Contender contender) {
  constexpr std::array<std::string_view, kContenders.size()> kKeys = {
      "model", "seasonal_naive", "seasonal_naive_bands", "persistence"};
  return kKeys[static_cast<std::size_t>(contender)];
}

void write_json(const EvalReport& report, const tables::TextSink& sink) {
  io::JsonWriter json;
  json.begin_object();
  json.key("engine");
  tables::write_engine(json, report.engine);
  json.field("horizon", report.windows.horizon).field("windows", report.windows.windows);
  json.field("stride", report.windows.stride).field("context", report.context);
  json.key("samples");
  report.samples > 0 ? json.value(report.samples) : json.null();
  json.key("paths");
  report.samples == 0 ? json.value(report.paths) : json.null();
  json.key("scale");
  report.scale == 0 ? json.value("auto") : json.value(report.scale);
  json.field("missing", report.missing);
  json.key("datasets").begin_array();
  for (const DatasetResult& result : report.datasets) write_dataset(json, result, sink);
  json.end_array();
  write_means(json, "geometric_mean", [&](Contender baseline) { return report.overall(baseline); });
  write_texts(json, "warnings", report.warnings);
  json.end_object();
  sink(json.take());
}

std::string table_text(const EvalReport& report) {
  std::string text;
  if (!report.engine.trained) {
    text += fmt::format(
        "note: {} is untrained: its weights are random and its forecasts meaningless\n\n",
        one_line(report.engine.model));
  }
  std::vector<Cells> ratios = {ratio_heading("model over baseline")};
  for (const DatasetResult& result : report.datasets) {
    const std::string name = short_name(result.name);
    text += fmt::format("{}: {}\n{}\n", name, summary_of(result, report.windows.horizon),
                        aligned(metric_rows(result, report)));
    ratios.push_back(ratio_cells(name, result.total));
    if (result.series.size() == 1) continue;
    if (result.series.size() <= kMaxSeriesLines) {
      for (const SeriesResult& series : result.series) {
        ratios.push_back(ratio_cells("  " + short_name(series.id), series.scores));
      }
    }
    ratios.push_back(mean_cells("  geometric mean of series",
                                [&](Contender baseline) { return result.series_mean(baseline); }));
  }
  if (report.datasets.size() > 1) ratios.push_back(overall_cells(report));
  return text + aligned(ratios);
}

}  // namespace toto::eval
