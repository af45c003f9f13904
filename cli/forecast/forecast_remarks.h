// Remarks about a forecast that is correct. Each is at most one sentence per run, whatever the
// number of series and files. tables/series_remarks.h has those that every route says.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/forecast/forecast_request.h"
#include "tables/series_file.h"
#include "tables/series_remarks.h"
#include "toto/toto.h"

namespace toto::cli {

// Gathered while the input is checked: first for each file alone, then for all of them.
class ForecastRemarks {
 public:
  explicit ForecastRemarks(const ForecastRequest& request)
      : request_(request), series_(request.options, !request.cuts_by_default) {}

  void add(const tables::InputSeries& series) { series_.add(series.id, series.values); }
  // A file of one variate, where --multivariate was asked for.
  void add_lone_variate(const tables::InputData& input);
  // `id_of`: by which name the answer will call the file's series.
  void merge(ForecastRemarks file, const std::function<std::string(std::string)>& id_of);

  // Warnings before the model is loaded, and after it.
  std::vector<std::string> about_data() const;
  std::vector<std::string> about_model(const ModelInfo& model) const;
  // A note: the steps that are exact, and those that are estimated.
  std::optional<std::string> simulated(const ModelInfo& model) const;

 private:
  std::vector<std::string> with_file(std::vector<std::string> sentences) const;

  const ForecastRequest& request_;
  tables::SeriesRemarks series_;
  std::size_t num_lone_ = 0;  // files
  std::string lone_file_, lone_id_;
  bool lone_has_columns_ = false;
};

}  // namespace toto::cli
