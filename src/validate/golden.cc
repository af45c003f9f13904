#include "validate/golden.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include "base/error.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace toto::validate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCaseFile = "case.safetensors";
constexpr std::array kFolderFiles = {kCaseFile, "config.json", "model.safetensors",
                                     "model.safetensors.index.json"};
// A committed case has some kilobytes; the largest base-size one some megabytes. The limit keeps a
// sparse file of terabytes from being read into memory.
constexpr std::uint64_t kMaxCaseBytes = std::uint64_t{1} << 30;

// ----------------------------------------------------------------------------------- the case file

class CaseReader {
 public:
  explicit CaseReader(const std::string& path) : file_(io::Safetensors::open(path)) {
    if (file_.file_size() > kMaxCaseBytes) {
      fail(ErrorCode::corrupt_file, "{}: has {} bytes, a golden case has at most {}", path,
           file_.file_size(), kMaxCaseBytes);
    }
  }

  const std::string& path() const { return file_.path(); }
  const std::vector<io::TensorInfo>& tensors() const { return file_.tensors(); }
  bool has(std::string_view name) const { return file_.find(name) != nullptr; }

  const io::TensorInfo& tensor(std::string_view name) const {
    const io::TensorInfo* found = file_.find(name);
    if (found == nullptr) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor {} is missing; a golden without it would leave it unchecked", path(),
           io::quoted(name));
    }
    return *found;
  }

  // The bytes of a tensor that must have this shape and one of these types.
  template <typename T>
  std::vector<T> read(std::string_view name, const std::vector<std::int64_t>& shape,
                      std::initializer_list<io::TensorType> types) const {
    const io::TensorInfo& info = tensor(name);
    if (info.shape != shape) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} has shape {}, expected {}", path(),
           io::quoted(name), io::shape_text(info.shape), io::shape_text(shape));
    }
    if (std::find(types.begin(), types.end(), info.type) == types.end()) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} is of type {}, expected {}", path(),
           io::quoted(name), io::name_of(info.type), io::name_of(*types.begin()));
    }
    std::vector<T> values(info.num_elements());
    file_.read_bytes(info, std::as_writable_bytes(std::span(values)));
    return values;
  }

  std::vector<float> read_input(std::string_view name,
                                const std::vector<std::int64_t>& shape) const {
    std::vector<float> values = read<float>(name, shape, {io::TensorType::f32});
    check_finite<float>(name, values);
    return values;
  }

  GoldenOutput read_output(const std::string& name, const std::vector<std::int64_t>& shape) const {
    GoldenOutput output;
    output.name = name;
    const std::vector<float> f32 = read<float>("f32." + name, shape, {io::TensorType::f32});
    output.f32.assign(f32.begin(), f32.end());
    output.f64 = read<double>("f64." + name, shape, {io::TensorType::f64});
    check_finite<double>("f32." + name, output.f32);
    check_finite<double>("f64." + name, output.f64);
    return output;
  }

  int whole_number(const char* key, int low, int high) const {
    const std::string& text = metadata(key);
    int number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size() || number < low ||
        number > high) {
      fail(ErrorCode::corrupt_file,
           "{}: metadata \"{}\" is {}, expected a whole number from {} to {}", path(), key,
           io::quoted(text), low, high);
    }
    return number;
  }

  bool boolean(const char* key) const {
    const std::string& text = metadata(key);
    if (text == "true" || text == "True" || text == "1") return true;
    if (text == "false" || text == "False" || text == "0") return false;
    fail(ErrorCode::corrupt_file, "{}: metadata \"{}\" is {}, expected true or false", path(), key,
         io::quoted(text));
  }

 private:
  const std::string& metadata(const char* key) const {
    const std::string* text = file_.metadata(key);
    if (text == nullptr) {
      fail(ErrorCode::corrupt_file, "{}: metadata \"{}\" is missing; is this a golden case?",
           path(), key);
    }
    return *text;
  }

  template <typename T>
  void check_finite(std::string_view name, std::span<const T> values) const {
    const auto bad =
        std::find_if(values.begin(), values.end(), [](T value) { return !std::isfinite(value); });
    if (bad != values.end()) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor {} holds {} at index {}, expected finite numbers: nothing can be compared "
           "with it",
           path(), io::quoted(name), *bad, bad - values.begin());
    }
  }

  io::Safetensors file_;
};

// --------------------------------------------------------------------------------- is it evidence?

void check_own_error(const CaseReader& file, const std::string& what, std::span<const double> f32,
                     std::span<const double> f64) {
  const double error = deviation(f32, f64).mean;
  const double size = mean_size(f64);
  // Written so that an overflow to infinity, or a NaN from one, does not get past it.
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

// No network says anything below these, so a golden of zeros is none (distribution.py: df is 2 plus
// something, scales are positive; scaler.py: the minimum scale).
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

// Something the reference is said to have answered that no check would look at.
void check_nothing_unknown(const CaseReader& file, const std::vector<GoldenOutput>& outputs) {
  for (const io::TensorInfo& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (!name.starts_with("f32.") && !name.starts_with("f64.")) continue;
    const bool known = std::any_of(outputs.begin(), outputs.end(), [name](const auto& output) {
      return output.name == name.substr(4);
    });
    if (!known) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor {} is no output of this model that can be checked; is it a golden of "
           "another version?",
           file.path(), io::quoted(name));
    }
  }
}

void check_labels(const Golden& golden) {
  const io::WeightFiles weights = io::WeightFiles::open(golden.folder);
  const auto entries = weights.entries();
  const bool found = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.tensor->name.ends_with("target_variate_label");
  });
  if (found != golden.variate_labels) {
    fail(ErrorCode::corrupt_file,
         "{}/{}: metadata \"variate_labels\" is {}, but the weights beside it have {} variate "
         "labels; were the files of two goldens mixed?",
         golden.folder, kCaseFile, golden.variate_labels, found ? "" : "no");
  }
}

// tools/dump_golden.py links to the checkpoint, which another machine does not have.
void check_links(const std::string& folder) {
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"}) {
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    if (!fs::is_symlink(path, error) || fs::exists(path, error)) continue;
    fail(ErrorCode::not_found,
         "{}: is a link to {}, which is not there; name the model to check with --model, or make "
         "the golden with --copy",
         path.string(), fs::read_symlink(path, error).string());
  }
}

// ------------------------------------------------------------------------------------------ inputs

template <typename T>
std::vector<T> entry_of(const std::vector<T>& all, std::size_t index, std::size_t num_entries) {
  const std::size_t size = all.size() / num_entries;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

void read_inputs(const CaseReader& file, Golden& golden) {
  const std::vector<std::int64_t> shape = file.tensor("series").shape;
  if (shape.size() != 3 || std::any_of(shape.begin(), shape.end(), [](auto n) { return n < 1; })) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor \"series\" has shape {}, expected [batch, variates, time], each at least 1",
         file.path(), io::shape_text(shape));
  }
  const std::vector<float> series = file.read_input("series", shape);
  const auto mask =
      file.read<std::uint8_t>("padding_mask", shape, {io::TensorType::u8, io::TensorType::boolean});
  const auto ids = file.read<std::int64_t>("id_mask", shape, {io::TensorType::i64});
  if (const auto bad = std::find_if(mask.begin(), mask.end(), [](auto flag) { return flag > 1; });
      bad != mask.end()) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor \"padding_mask\" holds {} at index {}, expected 0 or 1", file.path(), *bad,
         bad - mask.begin());
  }
  const auto variates =
      static_cast<int>(std::min<std::int64_t>(shape[1], std::numeric_limits<int>::max()));
  const int num_exogenous = file.whole_number("num_exogenous", 0, variates - 1);
  std::vector<float> future;
  if (file.has("future_exogenous")) {
    future = file.read_input("future_exogenous", {shape[0], num_exogenous, golden.horizon});
  }
  golden.num_variates = variates;
  const auto batch = static_cast<std::size_t>(shape[0]);
  for (std::size_t i = 0; i < batch; ++i) {
    golden.batch.push_back({.id = fmt::format("{}[{}]", golden.name, i),
                            .num_variates = variates,
                            .values = entry_of(series, i, batch),
                            .group_ids = entry_of(ids, i, batch),
                            .mask = entry_of(mask, i, batch),
                            .num_exogenous = num_exogenous,
                            .future_exogenous = entry_of(future, i, batch)});
  }
}

// ----------------------------------------------------------------------------------------- outputs

void read_outputs(const CaseReader& file, Golden& golden) {
  const auto batch = static_cast<std::int64_t>(golden.batch.size());
  const std::int64_t variates = golden.num_variates;
  // "df" says how long a patch is and how many components there are; check_fits asks the model.
  const std::vector<std::int64_t> df = file.tensor("f64.df").shape;
  constexpr std::int64_t kMaxDim = 1 << 16;
  if (df.size() != 4 || df[0] != batch || df[1] != variates || df[2] < 1 || df[3] < 1 ||
      std::max(df[2], df[3]) > kMaxDim) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor \"f64.df\" has shape {}, expected [{}, {}, patch, components]", file.path(),
         io::shape_text(df), batch, variates);
  }
  golden.patch_size = static_cast<int>(df[2]);
  golden.num_components = static_cast<int>(df[3]);
  const bool mixture = golden.num_components > 1 || file.has("f64.logits");

  for (const char* name : {"loc", "scale"}) {
    golden.outputs.push_back(file.read_output(name, {batch, variates, df[2]}));
  }
  for (const char* name : {"df", "component_loc", "component_scale", "logits"}) {
    if (name == std::string_view("logits") && !mixture) continue;
    golden.outputs.push_back(file.read_output(name, df));
  }
  for (const char* name : {"mean", "mean_no_cache"}) {
    golden.outputs.push_back(file.read_output(name, {batch, variates, golden.horizon}));
    golden.outputs.back().series_size = static_cast<std::size_t>(golden.horizon);
  }
}

// ----------------------------------------------------------------------------------------- folders

bool is_golden(const fs::path& folder) {
  // Any of its files makes it one, and so does not being allowed to look: a golden that lost its
  // case must be missed, not skipped.
  return std::any_of(kFolderFiles.begin(), kFolderFiles.end(), [&folder](const char* file) {
    std::error_code error;
    return fs::exists(folder / file, error) || error;
  });
}

std::vector<fs::path> goldens_in(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    fail(ErrorCode::not_found, "{}: {}; expected a golden folder, or a folder of them", path,
         fs::exists(path, error) ? "is no folder" : "there is no such folder");
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
    fail(
        ErrorCode::not_found,
        "{}: holds no golden; expected {} beside config.json and model.safetensors, here or in its "
        "folders",
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
  return patch_size == model.patch_size && num_components == model.num_components;
}

void Golden::check_fits(const ModelInfo& model) const {
  if (!fits(model)) {
    fail(ErrorCode::corrupt_file,
         "{}/{}: tensor \"f64.df\" is of patches of {} steps with {} components, the model beside "
         "it "
         "has {} steps and {} components; were the files of two goldens mixed?",
         folder, kCaseFile, patch_size, num_components, model.patch_size, model.num_components);
  }
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
      if (!seen.insert(canonical).second) continue;  // named twice
      std::string name = canonical.filename().string();
      // Names of checks must tell two goldens of one folder name apart.
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
  golden.variate_labels = file.boolean("variate_labels");
  read_inputs(file, golden);
  read_outputs(file, golden);
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

std::span<const double> output_of(const Trace& trace, std::string_view name) {
  if (name == "loc") return trace.loc;
  if (name == "scale") return trace.scale;
  if (name == "df") return trace.df;
  if (name == "component_loc") return trace.component_loc;
  if (name == "component_scale") return trace.component_scale;
  if (name == "logits") return trace.logits;
  if (name == "mean" || name == "mean_no_cache") return trace.mean;
  return {};
}

}  // namespace toto::validate
