// Remarks about a forecast that is correct. Each is at most one sentence per run, whatever the
// number of series and files.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/forecast/forecast_request.h"
#include "tables/series_file.h"
#include "toto/toto.h"

namespace toto::cli {

// Gathered while the input is checked: first for each file alone, then for all of them.
class ForecastRemarks {
 public:
  explicit ForecastRemarks(const ForecastRequest& request) : request_(request) {}

  void add(const tables::InputSeries& series);
  // A file of one variate, where --multivariate was asked for.
  void add_lone_variate(const tables::InputData& input);
  // `id_of`: by which name the answer will call the file's series.
  void merge(ForecastRemarks file, const std::function<std::string(std::string)>& id_of);

  // The default context cut a history.
  std::optional<std::string> context() const;
  // --multivariate with a single variate.
  std::optional<std::string> multivariate() const;
  // Series of one repeated value.
  std::optional<std::string> constant() const;
  // The steps that are exact, and those that are sampled.
  std::optional<std::string> sampled(const ModelInfo& model) const;
  // Bands along the mean's path.
  // Quantiles beyond the model's own levels.
  std::optional<std::string> tails(const ModelInfo& model) const;
  std::optional<std::string> mean_path(const ModelInfo& model) const;
  // Series that vary so little that the model's scaler, which adds a minimum to every scale, makes
  // flat lines of them. Constant ones are flat in any unit.
  std::optional<std::string> scale(const ModelInfo& model) const;

 private:
  std::string about_file() const;

  const ForecastRequest& request_;
  std::size_t num_cut_ = 0;
  std::size_t cut_length_ = 0;  // of the first that was cut
  std::string cut_id_;
  std::size_t num_constant_ = 0;
  std::string constant_id_;         // of the first
  std::vector<double> deviations_;  // of all series that vary; the model decides which are small
  double least_ = 0;                // of them
  std::string narrowest_id_;
  std::size_t num_lone_ = 0;  // files
  std::string lone_file_, lone_id_;
  bool lone_has_columns_ = false;
};

}  // namespace toto::cli
