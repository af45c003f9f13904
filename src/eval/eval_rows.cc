#include "eval/eval_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace toto::eval {
namespace {

std::string label_of(Contender contender, const EvalReport& report) {
  switch (contender) {
    case Contender::model:
      return report.engine.model;
    case Contender::seasonal_naive:
      return "seasonal naive";
    case Contender::seasonal_naive_bands:
      return "seasonal naive, bands";
    case Contender::persistence:
      break;
  }
  return "persistence";
}

Cells ratio_row(std::string name, const Ratios& naive, const Ratios& bands,
                const Ratios& persistence, std::string coverage) {
  return {std::move(name),         figure_text(naive.wql),       figure_text(bands.wql),
          figure_text(naive.mase), figure_text(persistence.mae), std::move(coverage)};
}

}  // namespace

std::string figure_text(std::optional<double> value) {
  if (!value) return "-";
  if (*value == 0) return "0";
  const double size = std::abs(*value);
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:.3e}", *value);
  if (size >= 1000) return fmt::format("{:.0f}", *value);
  if (size >= 100) return fmt::format("{:.1f}", *value);
  if (size >= 10) return fmt::format("{:.2f}", *value);
  return fmt::format("{:.{}f}", *value, size >= 0.1 ? 3 : 4);
}

std::string percent_text(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::string summary_of(const DatasetResult& result, int horizon) {
  const auto [low, high] = std::minmax_element(
      result.series.begin(), result.series.end(),
      [](const SeriesResult& a, const SeriesResult& b) { return a.season < b.season; });
  const std::int64_t windows = result.total.of(Contender::model).windows;
  std::string text = fmt::format("{} series, {} of {}, season {}", result.series.size(),
                                 counted(windows, "window"), counted(horizon, "step"), low->season);
  if (low->season != high->season) text += fmt::format(" to {}", high->season);
  if (!result.skipped.empty()) text += fmt::format(", {} series skipped", result.skipped.size());
  return text;
}

std::vector<Cells> metric_rows(const DatasetResult& result, const EvalReport& report) {
  std::vector<Cells> rows = {{"", "MASE", "WQL", "CRPS", "MAE", "sMAPE", "in 50 %", "in 80 %"}};
  for (const Contender contender : kContenders) {
    const Metrics m = result.total.metrics(contender);
    rows.push_back({label_of(contender, report), figure_text(m.mase), figure_text(m.wql),
                    figure_text(m.crps), figure_text(m.mae), figure_text(m.smape),
                    percent_text(m.coverage_50), percent_text(m.coverage_80)});
  }
  return rows;
}

Cells ratio_heading(std::string what) {
  return {std::move(what), "WQL/naive", "WQL/bands", "MASE/naive", "MAE/persistence", "in 80 %"};
}

Cells ratio_cells(std::string name, const Scores& scores) {
  return ratio_row(std::move(name), scores.ratios_to(Contender::seasonal_naive),
                   scores.ratios_to(Contender::seasonal_naive_bands),
                   scores.ratios_to(Contender::persistence),
                   percent_text(scores.metrics(Contender::model).coverage_80));
}

Cells mean_cells(std::string name, const std::function<RatioMean(Contender)>& mean_to) {
  return ratio_row(std::move(name), mean_to(Contender::seasonal_naive).mean(),
                   mean_to(Contender::seasonal_naive_bands).mean(),
                   mean_to(Contender::persistence).mean(), "");
}

Cells overall_cells(const EvalReport& report) {
  // Data sets without a ratio are not counted.
  const std::size_t counted = report.overall(Contender::seasonal_naive).num_wql();
  const std::size_t all = report.datasets.size();
  return mean_cells(counted == all ? fmt::format("geometric mean of {}", all)
                                   : fmt::format("geometric mean of {} of {}", counted, all),
                    [&](Contender baseline) { return report.overall(baseline); });
}

}  // namespace toto::eval
