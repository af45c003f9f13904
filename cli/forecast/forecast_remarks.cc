#include "cli/forecast/forecast_remarks.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::cli {

void ForecastRemarks::add_lone_variate(const tables::InputData& input) {
  if (num_lone_++ > 0) return;
  lone_file_ = input.name;
  lone_id_ = input.series.front().id;
  lone_has_columns_ = !input.time_name.empty();
}

void ForecastRemarks::merge(ForecastRemarks file,
                            const std::function<std::string(std::string)>& id_of) {
  series_.merge(std::move(file.series_), id_of);
  if (num_lone_ == 0 && file.num_lone_ > 0) {
    lone_file_ = std::move(file.lone_file_);
    lone_id_ = std::move(file.lone_id_);
    lone_has_columns_ = file.lone_has_columns_;
  }
  num_lone_ += file.num_lone_;
}

// Several files are told apart by the ids.
std::vector<std::string> ForecastRemarks::with_file(std::vector<std::string> sentences) const {
  if (request_.several_files()) return sentences;
  for (std::string& sentence : sentences) {
    sentence.insert(0, request_.files.front().name() + ": ");
  }
  return sentences;
}

std::vector<std::string> ForecastRemarks::about_data() const {
  std::vector<std::string> sentences = with_file(series_.about_data());
  if (num_lone_ > 0) {
    sentences.push_back(fmt::format(
        "--multivariate changes nothing{}: {} has one series, {}, and no other for it to look at{}",
        num_lone_ == 1 ? "" : fmt::format(" for {} files", num_lone_), lone_file_, quoted(lone_id_),
        lone_has_columns_ ? "; --columns A,B names the columns to read" : ""));
  }
  return sentences;
}

std::vector<std::string> ForecastRemarks::about_model(const ModelInfo& model) const {
  return with_file(series_.about_model(model.facts, request_.options));
}

std::optional<std::string> ForecastRemarks::simulated(const ModelInfo& model) const {
  const ForecastOptions& options = request_.options;
  const int exact = exact_steps(options, model.facts);
  if (exact == options.horizon || options.num_samples > 0) return {};
  const int paths = planned_paths(options, model.facts);
  const std::string steps = exact + 1 == options.horizon
                                ? fmt::format("{} is", exact + 1)
                                : fmt::format("{} to {} are", exact + 1, options.horizon);
  const int more = paths < 256 ? 256 : paths < 2000 ? 2000 : std::min(paths, kMaxSamples / 8) * 8;
  return fmt::format("steps 1 to {} are exact, {} estimated from {} simulated path{}{}", exact,
                     steps, paths, paths == 1 ? "" : "s",
                     more > paths ? fmt::format("; --paths {} is smoother", more) : "");
}

}  // namespace toto::cli
