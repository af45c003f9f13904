// Golden cases: inputs, weights, and the reference's answers in float32 and float64.
// A golden is evidence and is read like a hostile file: anything that could make a wrong engine
// look right (a missing output, a NaN, a bound it widens itself) is refused as corrupt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/toto.h"

namespace toto::validate {

// Absolute differences from the float64 values.
struct Deviation {
  double mean = 0;
  double max = 0;
};
// NaN if a value is not finite or the sizes differ: NaN fails every comparison.
Deviation deviation(std::span<const double> values, std::span<const double> f64);
double mean_size(std::span<const double> values);  // mean |x|

// The largest mean error allowed for an engine: 1.25 times the reference's own float32 error, plus
// 1e-7 of the mean size.
double tolerance(std::span<const double> f32, std::span<const double> f64);
// Above this share of mean |f64| the reference's own float32 error is too large to compare with.
inline constexpr double kMaxOwnError = 1e-3;

// One output of the reference, over the whole batch: [batch][variate][...].
struct GoldenOutput {
  std::string name;
  std::vector<double> f32, f64;  // the file's float32 values, widened
  // Values per series (one variate of one batch entry) if each series is judged separately. 0: the
  // output is judged only as a whole.
  std::size_t series_size = 0;
  bool in_units_of_scale = false;  // judged as (value - f64.loc) / f64.scale of its series
};

struct Golden {
  std::string name;  // of its folder, unique among those found together
  std::string folder;
  int horizon = 0;
  int num_variates = 0;                // with outputs: known ones of format 2 have none
  ForecastOptions reading;             // format 2: block, min_observed and cap; and the horizon
  std::string architecture;            // ModelFacts::architecture
  std::vector<NamedNumber> sizes;      // the numbers of ModelInfo::shape that the outputs imply
  std::optional<bool> variate_labels;  // Toto 1.0 only: whether the weights have them
  std::vector<Series> batch;
  std::vector<GoldenOutput> outputs;  // in the order of the format

  // "series 3, variate 1": the `index`-th group of GoldenOutput::series_size values.
  std::string series_name(std::size_t index) const;
  // Whether the model has the golden's architecture and sizes.
  bool fits(const ModelInfo& model) const;
  // Error(corrupt_file) if the model next to the golden does not fit.
  void check_fits(const ModelInfo& model) const;
  // "toto1, patch_size 4, num_components 2": the golden's sizes, or the same ones of a model.
  std::string described_sizes(const ModelInfo* model) const;
  // Scales values [batch][variate][...] in place. Does nothing if their number does not fit.
  void divide_by_scale(std::vector<double>& values) const;

  std::vector<double> loc, scale;  // f64, [batch][variate]; empty if no output is in units of scale
};

// Finds goldens: each path is a case folder, or a folder of case folders (sorted by name).
// Error(not_found) for a path that does not exist or has no golden: without evidence nothing may
// pass.
struct GoldenFolder {
  std::string name;
  std::string path;
};
std::vector<GoldenFolder> find_goldens(std::span<const std::string> paths);

// Reads and checks one case. Error(not_found) or Error(corrupt_file) naming file and tensor. The
// model next to it is read only if it is the one to be checked: a golden made on another machine
// may link to a model that does not exist here.
enum class GoldenUse { with_its_model, with_another };
Golden read_golden(const GoldenFolder& folder, GoldenUse use = GoldenUse::with_its_model);

// Suffix of outputs computed without the cache of keys and values.
inline constexpr std::string_view kUncachedSuffix = "_no_cache";
// Suffix of quantiles forecast block by block, next to those of one pass.
inline constexpr std::string_view kBlockSuffix = "_block";

// The trace's values for a golden's output; empty if there are none.
std::span<const double> output_of(const Trace& trace, std::string_view name);
// The traces of a golden's batch in the form that is judged: [batch][variate][...], in units of
// scale if the output is.
std::vector<double> answer_of(const Golden& golden, const GoldenOutput& output,
                              std::span<const Trace> traces);

}  // namespace toto::validate
