// What is said about the series of a forecast that is correct: a history that was cut, cells that
// were filled, series that are constant or look flat to the model. Command, service and Python say
// the same sentences. Each is at most one per answer, whatever the number of series.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/toto.h"

namespace toto::tables {

// What the user should know about a model: its warnings, and that it is untrained.
std::vector<std::string> model_warnings(const ModelInfo& model, std::string_view name);

// One series after the other is added; then the sentences are asked for.
class SeriesRemarks {
 public:
  SeriesRemarks() = default;
  // Whether the number of points was asked for: a cut is then not worth a remark.
  SeriesRemarks(const ForecastOptions& options, bool context_given)
      : max_context_(static_cast<std::size_t>(options.max_context)),
        context_given_(context_given),
        scale_is_fixed_(options.scale != 0),
        missing_(options.missing) {}

  // An empty id is not shown. `dropped`: missing values that were before the first one.
  void add(std::string_view id, std::span<const float> values, std::size_t dropped = 0);
  // `id_of`: by which name the answer calls a series of `other`.
  void merge(SeriesRemarks other, const std::function<std::string(std::string)>& id_of);

  // The default context cut a history; values were missing, at the beginning or later; series of
  // one repeated value.
  std::vector<std::string> about_data() const;
  // Series that vary so little, with the scale asked for, that the model's scaler, which adds a
  // minimum to every scale, makes flat lines of them (constant ones are flat in any unit); bands
  // along the mean's path; quantiles beyond the model's own levels.
  std::vector<std::string> about_model(const ModelFacts& facts,
                                       const ForecastOptions& options) const;

 private:
  // Series of one kind: how many, and the first.
  struct Tally {
    std::size_t count = 0;
    std::string id;
    void add(std::string_view name) {
      if (count++ == 0) id = name;
    }
    void merge(Tally other, const std::function<std::string(std::string)>& id_of);
    std::string text() const;  // "the series "a" and 2 more"
  };

  std::size_t max_context_ = 0;
  bool context_given_ = false;
  bool scale_is_fixed_ = false;
  Missing missing_ = Missing::ffill;
  Tally cut_, leading_, filled_, constant_;
  std::size_t cut_length_ = 0;      // of the first that was cut
  std::size_t num_leading_ = 0;     // values of all series
  std::size_t num_filled_ = 0;      // the same
  std::vector<double> deviations_;  // of series that vary, if their scale is fixed
  double least_ = 0;                // of them
  std::string narrowest_id_;
};

}  // namespace toto::tables
