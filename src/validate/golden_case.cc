#include "validate/golden_case.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace toto::validate {
namespace {

// A committed case has kilobytes, the largest base-size one megabytes. The limit keeps a sparse
// file of terabytes from being read into memory.
constexpr std::uint64_t kMaxCaseBytes = std::uint64_t{1} << 30;

template <typename T>
std::vector<T> entry_of(const std::vector<T>& all, std::size_t index, std::size_t num_entries) {
  const std::size_t size = all.size() / num_entries;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

std::vector<std::int64_t> series_shape(const CaseReader& file, std::string_view name) {
  const std::vector<std::int64_t> shape = file.tensor(name).shape;
  if (shape.size() != 3 || std::any_of(shape.begin(), shape.end(), [](auto n) { return n < 1; })) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor {} has shape {}, expected [batch, variates, time], each at least 1",
         file.path(), quoted(name), io::shape_text(shape));
  }
  return shape;
}

// --------------------------------------------------------------------------- format 1: Toto 1.0

void read_inputs_1(const CaseReader& file, Golden& golden) {
  const std::vector<std::int64_t> shape = series_shape(file, "series");
  const std::vector<float> series = file.read_input("series", shape);
  const auto mask = file.read_mask("padding_mask", shape);
  const auto ids = file.read<std::int64_t>("id_mask", shape, {io::TensorType::i64});
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

void read_outputs_1(const CaseReader& file, Golden& golden) {
  const auto batch = static_cast<std::int64_t>(golden.batch.size());
  const std::int64_t variates = golden.num_variates;
  // "df" has the patch size and the number of components; check_fits compares them with the model.
  const std::vector<std::int64_t> df = file.tensor("f64.df").shape;
  constexpr std::int64_t kMaxDim = 1 << 16;
  if (df.size() != 4 || df[0] != batch || df[1] != variates || df[2] < 1 || df[3] < 1 ||
      std::max(df[2], df[3]) > kMaxDim) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor \"f64.df\" has shape {}, expected [{}, {}, patch, components]", file.path(),
         io::shape_text(df), batch, variates);
  }
  golden.architecture = "toto1";
  golden.sizes = {{"patch_size", df[2]}, {"num_components", df[3]}};
  const bool mixture = df[3] > 1 || file.has("f64.logits");

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

// ------------------------------------------------------- format 2: any architecture, by its name

// Missing values have an id that means "no patch" to the model.
void check_group_ids(const CaseReader& file, std::string_view name,
                     const std::vector<std::int64_t>& ids) {
  if (std::ranges::find(ids, -1) == ids.end()) return;
  fail(ErrorCode::corrupt_file,
       "{}: tensor {} holds the id -1, which stands for an unobserved patch; expected any other",
       file.path(), quoted(name));
}

// Optional metadata: a golden without them was made by a model that does not read them.
void read_options_2(const CaseReader& file, Golden& golden) {
  golden.reading = {.min_observed = 0, .cap = 0};
  if (file.find_metadata("block") != nullptr) {
    golden.reading.block = file.whole_number("block", 0, kMaxHorizon * 2);
  }
  if (file.find_metadata("min_obs") != nullptr) {
    golden.reading.min_observed = file.whole_number("min_obs", 0, kMaxHorizon);
  }
  if (file.find_metadata("cap") != nullptr) golden.reading.cap = file.number("cap", 0, 1e30);
}

// The known variates of a batch, [batch][variate][context, then horizon].
struct KnownVariates {
  KnownVariates(const CaseReader& file, std::int64_t batch, std::int64_t context, int horizon) {
    if (!file.has("known_dynamic")) return;
    const std::vector<std::int64_t> shape = series_shape(file, "known_dynamic");
    if (shape[0] != batch || shape[2] != context + horizon || shape[1] > (1 << 20)) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor \"known_dynamic\" has shape {}, expected [{}, known variates, {}]",
           file.path(), io::shape_text(shape), batch, context + horizon);
    }
    count = static_cast<int>(shape[1]);
    length = static_cast<std::size_t>(shape[2]);
    values = file.read_input("known_dynamic", shape);
    mask = file.read_mask("known_dynamic_mask", shape);
    ids = file.read<std::int64_t>("known_dynamic_series_ids", {shape[0], shape[1]},
                                  {io::TensorType::i64});
    check_group_ids(file, "known_dynamic_series_ids", ids);
  }

  // Appends the known variates of batch entry `index` to its series.
  void append_to(Series& series, std::size_t index, std::size_t context) const {
    for (int k = 0; k < count; ++k) {
      const std::size_t at = index * count + k;
      const auto from = static_cast<std::ptrdiff_t>(at * length);
      const auto middle = from + static_cast<std::ptrdiff_t>(context);
      series.values.insert(series.values.end(), values.begin() + from, values.begin() + middle);
      series.mask.insert(series.mask.end(), mask.begin() + from, mask.begin() + middle);
      series.group_ids.push_back(ids[at]);
      for (std::size_t t = context; t < length; ++t) {
        series.future_exogenous.push_back(mask[at * length + t] != 0
                                              ? values[at * length + t]
                                              : std::numeric_limits<float>::quiet_NaN());
      }
    }
    series.num_variates += count;
    series.num_exogenous = count;
  }

  int count = 0;
  std::size_t length = 0;  // of context and horizon
  std::vector<float> values = {};
  std::vector<std::uint8_t> mask = {};
  std::vector<std::int64_t> ids = {};
};

void read_inputs_2(const CaseReader& file, Golden& golden) {
  const std::vector<std::int64_t> shape = series_shape(file, "target");
  const std::vector<float> series = file.read_input("target", shape);
  const auto mask = file.read_mask("target_mask", shape);
  const auto ids =
      file.read<std::int64_t>("series_ids", {shape[0], shape[1]}, {io::TensorType::i64});
  check_group_ids(file, "series_ids", ids);
  read_options_2(file, golden);
  golden.num_variates =
      static_cast<int>(std::min<std::int64_t>(shape[1], std::numeric_limits<int>::max()));
  const KnownVariates known(file, shape[0], shape[2], golden.horizon);
  const auto batch = static_cast<std::size_t>(shape[0]);
  for (std::size_t i = 0; i < batch; ++i) {
    golden.batch.push_back({.id = fmt::format("{}[{}]", golden.name, i),
                            .num_variates = golden.num_variates,
                            .values = entry_of(series, i, batch),
                            .group_ids = entry_of(ids, i, batch),
                            .mask = entry_of(mask, i, batch)});
    known.append_to(golden.batch.back(), i, static_cast<std::size_t>(shape[2]));
  }
}

// Outputs whose first axis is the level: [level, batch, variate, ...].
bool is_level_first(std::string_view name) {
  return name.starts_with("raw") || name.starts_with("quantiles");
}

// [level][series][rest] becomes [series][level][rest].
void put_series_first(std::vector<double>& values, std::int64_t levels, std::int64_t series) {
  const std::array shape = {levels, series,
                            static_cast<std::int64_t>(values.size()) / (levels * series)};
  values = variate_first(values, shape, 1);
}

// Reads every output in the file. Quantiles are judged in units of scale, as a whole and per
// series: at a large offset an error would be small compared to loc.
void read_outputs_2(const CaseReader& file, Golden& golden) {
  golden.architecture = file.metadata("architecture");
  for (const char* name : {"f64.raw", "f64.quantiles"}) file.tensor(name);
  if (golden.reading.block > 0) file.tensor("f64.quantiles_block");
  const auto batch = static_cast<std::int64_t>(golden.batch.size());
  const std::int64_t variates = golden.num_variates, series = batch * variates;
  for (const char* name : {"loc", "scale"}) {
    golden.outputs.push_back(file.read_output(name, {batch, variates}));
  }
  golden.loc = golden.outputs[0].f64;
  golden.scale = golden.outputs[1].f64;
  for (const io::TensorInfo& tensor : file.tensors()) {
    if (!tensor.name.starts_with("f64.")) continue;
    const std::string name = tensor.name.substr(4);
    if (name == "loc" || name == "scale") continue;
    const std::size_t axis = is_level_first(name) ? 1 : 0;
    const std::vector<std::int64_t>& shape = tensor.shape;
    if (shape.size() < axis + 2 || shape[axis] != batch || shape[axis + 1] != variates ||
        std::ranges::any_of(shape, [](auto n) { return n < 1; })) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} has shape {}, expected [{}{}, {}, ...]",
           file.path(), quoted(tensor.name), io::shape_text(shape), axis == 1 ? "levels, " : "",
           batch, variates);
    }
    GoldenOutput output = file.read_output(name, shape);
    if (axis == 1) {
      put_series_first(output.f32, shape[0], series);
      put_series_first(output.f64, shape[0], series);
    }
    if (name.starts_with("quantiles")) {
      output.in_units_of_scale = true;
      output.series_size = output.f64.size() / static_cast<std::size_t>(series);
      golden.divide_by_scale(output.f32);
      golden.divide_by_scale(output.f64);
    }
    golden.outputs.push_back(std::move(output));
  }
}

}  // namespace

void read_case(const CaseReader& file, Golden& golden) {
  if (file.find_metadata("architecture") != nullptr) {
    read_inputs_2(file, golden);
    read_outputs_2(file, golden);
    return;
  }
  golden.variate_labels = file.boolean("variate_labels");
  read_inputs_1(file, golden);
  read_outputs_1(file, golden);
}

std::vector<double> variate_first(std::span<const double> values,
                                  std::span<const std::int64_t> shape, int variate_axis) {
  std::size_t before = 1, after = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<int>(i) < variate_axis) before *= static_cast<std::size_t>(shape[i]);
    if (static_cast<int>(i) > variate_axis) after *= static_cast<std::size_t>(shape[i]);
  }
  const auto variates = static_cast<std::size_t>(shape[variate_axis]);
  // A wrong engine's trace may not have this shape; the caller compares the number of values.
  if (before * variates * after != values.size()) return {values.begin(), values.end()};
  std::vector<double> result;
  result.reserve(values.size());
  for (std::size_t v = 0; v < variates; ++v) {
    for (std::size_t b = 0; b < before; ++b) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>((b * variates + v) * after);
      result.insert(result.end(), from, from + static_cast<std::ptrdiff_t>(after));
    }
  }
  return result;
}

void Golden::divide_by_scale(std::vector<double>& values) const {
  if (scale.empty() || values.size() % scale.size() != 0) return;
  const std::size_t size = values.size() / scale.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (values[i] - loc[i / size]) / scale[i / size];
  }
}

// ----------------------------------------------------------------------------------- the case file

CaseReader::CaseReader(const std::string& path) : file_(io::Safetensors::open(path)) {
  if (file_.file_size() > kMaxCaseBytes) {
    fail(ErrorCode::corrupt_file, "{}: has {} bytes, a golden case has at most {}", path,
         file_.file_size(), kMaxCaseBytes);
  }
}

const io::TensorInfo& CaseReader::tensor(std::string_view name) const {
  const io::TensorInfo* found = file_.find(name);
  if (found == nullptr) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor {} is missing; a golden without it would leave it unchecked", path(),
         quoted(name));
  }
  return *found;
}

const io::TensorInfo& CaseReader::checked(std::string_view name,
                                          const std::vector<std::int64_t>& shape,
                                          std::initializer_list<io::TensorType> types) const {
  const io::TensorInfo& info = tensor(name);
  if (info.shape != shape) {
    fail(ErrorCode::corrupt_file, "{}: tensor {} has shape {}, expected {}", path(), quoted(name),
         io::shape_text(info.shape), io::shape_text(shape));
  }
  if (std::find(types.begin(), types.end(), info.type) == types.end()) {
    fail(ErrorCode::corrupt_file, "{}: tensor {} is of type {}, expected {}", path(), quoted(name),
         io::name_of(info.type), io::name_of(*types.begin()));
  }
  return info;
}

std::vector<float> CaseReader::read_input(std::string_view name,
                                          const std::vector<std::int64_t>& shape) const {
  std::vector<float> values = read<float>(name, shape, {io::TensorType::f32});
  check_finite<float>(name, values);
  return values;
}

std::vector<std::uint8_t> CaseReader::read_mask(std::string_view name,
                                                const std::vector<std::int64_t>& shape) const {
  auto mask = read<std::uint8_t>(name, shape, {io::TensorType::u8, io::TensorType::boolean});
  if (const auto bad = std::find_if(mask.begin(), mask.end(), [](auto flag) { return flag > 1; });
      bad != mask.end()) {
    fail(ErrorCode::corrupt_file, "{}: tensor {} holds {} at index {}, expected 0 or 1", path(),
         quoted(name), *bad, bad - mask.begin());
  }
  return mask;
}

GoldenOutput CaseReader::read_output(const std::string& name,
                                     const std::vector<std::int64_t>& shape) const {
  GoldenOutput output;
  output.name = name;
  const std::vector<float> f32 = read<float>("f32." + name, shape, {io::TensorType::f32});
  output.f32.assign(f32.begin(), f32.end());
  output.f64 = read<double>("f64." + name, shape, {io::TensorType::f64});
  check_finite<double>("f32." + name, output.f32);
  check_finite<double>("f64." + name, output.f64);
  return output;
}

double CaseReader::number(const char* key, double low, double high) const {
  const std::string& text = metadata(key);
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() ||
      !(number >= low && number <= high)) {
    fail(ErrorCode::corrupt_file, "{}: metadata \"{}\" is {}, expected a number from {} to {}",
         path(), key, quoted(text), low, high);
  }
  return number;
}

int CaseReader::whole_number(const char* key, int low, int high) const {
  const std::string& text = metadata(key);
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < low || number > high) {
    fail(ErrorCode::corrupt_file,
         "{}: metadata \"{}\" is {}, expected a whole number from {} to {}", path(), key,
         quoted(text), low, high);
  }
  return number;
}

bool CaseReader::boolean(const char* key) const {
  const std::string& text = metadata(key);
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  fail(ErrorCode::corrupt_file, "{}: metadata \"{}\" is {}, expected true or false", path(), key,
       quoted(text));
}

const std::string& CaseReader::metadata(const char* key) const {
  const std::string* text = file_.metadata(key);
  if (text == nullptr) {
    fail(ErrorCode::corrupt_file, "{}: metadata \"{}\" is missing; is this a golden case?", path(),
         key);
  }
  return *text;
}

template <typename T>
void CaseReader::check_finite(std::string_view name, std::span<const T> values) const {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](T value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    fail(ErrorCode::corrupt_file,
         "{}: tensor {} holds {} at index {}, expected finite numbers: nothing can be compared "
         "with it",
         path(), quoted(name), *bad, bad - values.begin());
  }
}

}  // namespace toto::validate
