// Golden cases: inputs, weights, and the reference's answers in float32 and float64.
// A golden is evidence, so it is read like a hostile file: whatever could make a wrong engine look
// right (a missing output, a NaN, a bound it widens itself) is refused as corrupt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/toto.h"

namespace toto::validate {

// How far a set of values lies from the float64 ones.
struct Deviation {
  double mean = 0;
  double max = 0;
};
// NaN if a value is not finite or the sizes differ: no comparison with it holds.
Deviation deviation(std::span<const double> values, std::span<const double> f64);
double mean_size(std::span<const double> values);  // mean |x|

// What an engine's mean error may be: a little over the reference's own float32 error.
double tolerance(std::span<const double> f32, std::span<const double> f64);
// Above this share of mean |f64| the reference's own float32 error is no yardstick any more.
inline constexpr double kMaxOwnError = 1e-3;

// One output of the reference, over the whole batch: [batch][variate][...].
struct GoldenOutput {
  std::string name;
  std::vector<double> f32, f64;  // the file's float32 values, widened
  // Values of one series, that is one variate of one batch entry, where each must hold alone. 0 for
  // outputs that are only judged as a whole.
  std::size_t series_size = 0;
  bool in_units_of_scale = false;  // (value - f64.loc) / f64.scale of its series is judged
};

struct Golden {
  std::string name;  // of its folder, unique among those found together
  std::string folder;
  int horizon = 0;
  int num_variates = 0;
  std::string architecture;            // ModelFacts::architecture
  std::vector<NamedNumber> sizes;      // numbers of ModelInfo::shape that the outputs show
  std::optional<bool> variate_labels;  // of Toto 1.0: whether its weights have them
  std::vector<Series> batch;
  std::vector<GoldenOutput> outputs;  // in the order of the format

  // "series 3, variate 1": which one the values of GoldenOutput::series_size number `index` are of.
  std::string series_name(std::size_t index) const;
  // Whether a model answers in the shapes the golden holds.
  bool fits(const ModelInfo& model) const;
  // Error(corrupt_file) if the model next to the golden does not.
  void check_fits(const ModelInfo& model) const;
  // "toto1, patch_size 4, num_components 2": of the golden, or the same numbers of a model.
  std::string described_sizes(const ModelInfo* model) const;
  // Values of [batch][variate][...], in place. Nothing where their number does not fit.
  void divide_by_scale(std::vector<double>& values) const;

  std::vector<double> loc, scale;  // f64, [batch][variate]; empty where nothing is in units of them
};

// Where the goldens are: each path is a case folder, or a folder of case folders (sorted by name).
// A path that is not there, or holds no golden, is Error(not_found): a gate without evidence must
// not open.
struct GoldenFolder {
  std::string name;
  std::string path;
};
std::vector<GoldenFolder> find_goldens(std::span<const std::string> paths);

// Reads and judges one case. Error(not_found) or Error(corrupt_file) naming file and tensor. The
// model next to it is looked at only if it is the one to be checked: a golden made elsewhere may
// have links to one that is not here.
enum class GoldenUse { with_its_model, with_another };
Golden read_golden(const GoldenFolder& folder, GoldenUse use = GoldenUse::with_its_model);

// Ends the name of an output that only an engine without the cache of keys and values answers.
inline constexpr std::string_view kUncachedSuffix = "_no_cache";

// The values of a trace by the name of a golden's output; empty if it has none.
std::span<const double> output_of(const Trace& trace, std::string_view name);
// The traces of a golden's batch as the output is judged: [batch][variate][...], in units of the
// scale where the golden says so.
std::vector<double> answer_of(const Golden& golden, const GoldenOutput& output,
                              std::span<const Trace> traces);

}  // namespace toto::validate
