#include "validate/golden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "io/safetensors.h"
#include "validate/golden_case.h"

namespace toto::validate {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFolderFiles = {kCaseFile, "config.json", "model.safetensors",
                                     "model.safetensors.index.json"};
// ---------------------------------------------------------------------------------- plausibility

void check_own_error(const CaseReader& file, const std::string& what, std::span<const double> f32,
                     std::span<const double> f64) {
  const double error = deviation(f32, f64).mean;
  const double size = mean_size(f64);
  // Infinities and NaN must fail this comparison.
  if (error <= kMaxOwnError * size && std::isfinite(size)) return;
  fail(ErrorCode::corrupt_file,
       "{}: {} differs by {:.3g} between f32 and f64, more than {:g} of its mean size {:.3g}; such "
       "a golden would widen its own bound",
       file.path(), what, error, kMaxOwnError, size);
}

void check_own_errors(const CaseReader& file, const Golden& golden, const GoldenOutput& output) {
  check_own_error(file, fmt::format("\"{}\"", output.name), output.f32, output.f64);
  if (output.series_size == 0) return;
  for (std::size_t i = 0; i * output.series_size < output.f64.size(); ++i) {
    const std::size_t at = i * output.series_size;
    check_own_error(file, fmt::format("\"{}\" of {}", output.name, golden.series_name(i)),
                    std::span(output.f32).subspan(at, output.series_size),
                    std::span(output.f64).subspan(at, output.series_size));
  }
}

// The lowest possible outputs, so that a golden of zeros is refused (distribution.py: df is 2 plus
// a positive number, scales are positive; scaler.py: the minimum scale).
void check_range(const CaseReader& file, const GoldenOutput& output) {
  const bool is_df = output.name == "df";
  if (!is_df && output.name != "scale" && output.name != "component_scale") return;
  for (const std::vector<double>* values : {&output.f32, &output.f64}) {
    const auto lowest = std::min_element(values->begin(), values->end());
    if (is_df ? *lowest >= 2 : *lowest > 0) continue;
    fail(ErrorCode::corrupt_file, "{}: \"{}\" holds {} at index {}, expected {}", file.path(),
         output.name, *lowest, lowest - values->begin(),
         is_df ? "at least 2" : "a positive number");
  }
}

// Refuses outputs that no check would look at.
void check_nothing_unknown(const CaseReader& file, const std::vector<GoldenOutput>& outputs) {
  for (const io::TensorInfo& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (!name.starts_with("f32.") && !name.starts_with("f64.")) continue;
    const bool known = std::any_of(outputs.begin(), outputs.end(), [name](const auto& output) {
      return output.name == name.substr(4);
    });
    if (!known) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor {} is not an output of this model that can be checked; is it a golden of "
           "another version?",
           file.path(), quoted(name));
    }
  }
}

void check_labels(const Golden& golden) {
  if (!golden.variate_labels) return;
  const io::WeightFiles weights = io::WeightFiles::open(golden.folder);
  const auto entries = weights.entries();
  const bool found = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.tensor->name.ends_with("target_variate_label");
  });
  if (found != *golden.variate_labels) {
    fail(ErrorCode::corrupt_file,
         "{}/{}: metadata \"variate_labels\" is {}, but the weights next to it have {} variate "
         "labels; were the files of two goldens mixed?",
         golden.folder, kCaseFile, *golden.variate_labels, found ? "" : "no");
  }
}

// tools/dump_golden.py links to the checkpoint, which may not exist on another machine.
void check_links(const std::string& folder) {
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"}) {
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    if (!fs::is_symlink(path, error) || fs::exists(path, error)) continue;
    fail(ErrorCode::not_found,
         "{}: is a link to {}, which does not exist; name the model to check with --model, or make "
         "the golden with --copy",
         path.string(), fs::read_symlink(path, error).string());
  }
}

// ----------------------------------------------------------------------------------------- folders

bool is_golden(const fs::path& folder) {
  // Any one of its files makes a folder a golden, and so does a folder that cannot be read: a
  // golden without its case must be reported as missing, not skipped.
  return std::any_of(kFolderFiles.begin(), kFolderFiles.end(), [&folder](const char* file) {
    std::error_code error;
    return fs::exists(folder / file, error) || error;
  });
}

std::vector<fs::path> goldens_in(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    fail(ErrorCode::not_found, "{}: {}; expected a golden folder, or a folder of them", path,
         fs::exists(path, error) ? "is not a folder" : "there is no such folder");
  }
  if (is_golden(path)) return {path};
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_golden(entry->path())) found.push_back(entry->path());
  }
  if (error) {
    fail(ErrorCode::not_found, "{}: cannot be read: {}", path, error.message());
  }
  if (found.empty()) {
    fail(ErrorCode::not_found,
         "{}: has no golden; expected {} next to config.json and model.safetensors, in it or in "
         "its subfolders",
         path, kCaseFile);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Deviation deviation(std::span<const double> values, std::span<const double> f64) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (values.size() != f64.size() || f64.empty()) return {kNan, kNan};
  Deviation result;
  for (std::size_t i = 0; i < f64.size(); ++i) {
    const double error = std::abs(values[i] - f64[i]);
    if (!std::isfinite(error)) return {kNan, kNan};
    result.mean += error;
    result.max = std::max(result.max, error);
  }
  result.mean /= static_cast<double>(f64.size());
  return result;
}

double mean_size(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::abs(value);
  return sum / static_cast<double>(values.size());
}

double tolerance(std::span<const double> f32, std::span<const double> f64) {
  return 1.25 * deviation(f32, f64).mean + 1e-7 * mean_size(f64);
}

std::string Golden::series_name(std::size_t index) const {
  const auto variates = static_cast<std::size_t>(num_variates);
  return fmt::format("series {}, variate {}", index / variates, index % variates);
}

bool Golden::fits(const ModelInfo& model) const {
  return architecture == model.facts.architecture &&
         std::ranges::all_of(sizes, [&model](const NamedNumber& size) {
           return std::ranges::any_of(model.shape, [&size](const NamedNumber& number) {
             return number.name == size.name && number.value == size.value;
           });
         });
}

std::string Golden::described_sizes(const ModelInfo* model) const {
  std::string text = model != nullptr ? model->facts.architecture : architecture;
  for (const NamedNumber& size : sizes) {
    for (const NamedNumber& number : model != nullptr ? model->shape : sizes) {
      if (number.name == size.name) text += fmt::format(", {} {}", number.name, number.value);
    }
  }
  return text;
}

void Golden::check_fits(const ModelInfo& model) const {
  if (fits(model)) return;
  fail(ErrorCode::corrupt_file,
       "{}/{}: the golden is of a model with {}, the one next to it has {}; were the files of two "
       "goldens mixed?",
       folder, kCaseFile, described_sizes(nullptr), described_sizes(&model));
}

std::vector<GoldenFolder> find_goldens(std::span<const std::string> paths) {
  std::vector<GoldenFolder> found;
  std::set<fs::path> seen;
  std::set<std::string> names;
  for (const std::string& path : paths) {
    for (const fs::path& folder : goldens_in(path)) {
      std::error_code error;
      const fs::path canonical = fs::canonical(folder, error);
      if (error)
        fail(ErrorCode::not_found, "{}: cannot be read: {}", folder.string(), error.message());
      if (!seen.insert(canonical).second) continue;  // given twice
      std::string name = canonical.filename().string();
      // Names of checks must be unique even if two folders have the same name.
      for (int copy = 2; !names.insert(name).second; ++copy) {
        name = fmt::format("{}~{}", canonical.filename().string(), copy);
      }
      found.push_back({std::move(name), folder.string()});
    }
  }
  return found;
}

Golden read_golden(const GoldenFolder& folder, GoldenUse use) {
  Golden golden;
  golden.name = folder.name;
  golden.folder = folder.path;
  const CaseReader file((fs::path(folder.path) / kCaseFile).string());
  golden.horizon = file.whole_number("horizon", 1, kMaxHorizon);
  read_case(file, golden);
  check_nothing_unknown(file, golden.outputs);
  for (const GoldenOutput& output : golden.outputs) {
    check_range(file, output);
    check_own_errors(file, golden, output);
  }
  if (use == GoldenUse::with_its_model) {
    check_links(folder.path);
    check_labels(golden);
  }
  return golden;
}

namespace {

const TraceArray* array_of(const Trace& trace, std::string_view name) {
  for (const std::string_view suffix : {kUncachedSuffix, kBlockSuffix}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return trace.find(name);
}

}  // namespace

std::span<const double> output_of(const Trace& trace, std::string_view name) {
  const TraceArray* array = array_of(trace, name);
  return array != nullptr ? std::span<const double>(array->values) : std::span<const double>();
}

std::vector<double> answer_of(const Golden& golden, const GoldenOutput& output,
                              std::span<const Trace> traces) {
  std::vector<double> answer;
  for (const Trace& trace : traces) {
    const TraceArray* array = array_of(trace, output.name);
    if (array == nullptr) continue;
    const std::vector<double> some =
        variate_first(array->values, array->shape, array->variate_axis);
    answer.insert(answer.end(), some.begin(), some.end());
  }
  if (output.in_units_of_scale) golden.divide_by_scale(answer);
  return answer;
}

}  // namespace toto::validate
