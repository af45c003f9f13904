// The results of an evaluation as JSON, as a text table and as a page with charts.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluate.h"
#include "report/fan_chart.h"
#include "tables/forecast_file.h"

namespace toto::eval {

struct EvalReport {
  tables::EngineBlock engine = {};
  WindowOptions windows = {};  // with the stride filled in
  int context = 0;             // most points of history the model sees
  int samples = 0;             // sampled paths; 0: exact for the first patch
  int paths = 0;               // averaged beyond it, without `samples`
  double scale = 0;            // 0: automatic
  std::vector<std::string> warnings = {};
  std::string missing = "ffill";             // treatment of gaps in the history
  std::vector<DatasetResult> datasets = {};  // each with at least one series

  RatioMean overall(Contender baseline) const;  // over the data sets
};

inline constexpr std::array<Contender, 3> kBaselines = {
    Contender::seasonal_naive, Contender::seasonal_naive_bands, Contender::persistence};
std::string_view key_of(Contender contender);  // "seasonal_naive_bands"

// Written in parts: a data set may have 10^5 series. A figure without a value is null.
void write_json(const EvalReport& report, const tables::TextSink& sink);

// Per data set the figures of every contender, then the ratios; of single series too if they are
// few.
std::string table_text(const EvalReport& report);

// One offline page. `charts`: [data set], each with the charts of its notable windows.
std::string page_html(const EvalReport& report,
                      std::span<const std::vector<report::FanChart>> charts);

}  // namespace toto::eval
