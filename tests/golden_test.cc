// Goldens as evidence: what is in them comes out unchanged, and whatever could make a wrong engine
// look right is refused.
#include "validate/golden.h"

#include <cmath>
#include <functional>
#include <limits>

#include "golden_fixture.h"

namespace toto::validate {
namespace {

using io::expect_error;
using io::TemporaryFolder;
using io::TensorType;

Golden read(const std::string& folder) { return read_golden({"case", folder}); }

const GoldenOutput& output(const Golden& golden, std::string_view name) {
  for (const GoldenOutput& candidate : golden.outputs) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no output " + std::string(name));
}

// ---------------------------------------------------------------------------------------
// arithmetic

TEST(Deviation, IsMeanAndMaximum) {
  const Deviation result = deviation(std::vector<double>{1, 2, 7}, std::vector<double>{1, 1, 5});
  EXPECT_DOUBLE_EQ(result.mean, 1);
  EXPECT_DOUBLE_EQ(result.max, 2);
}

TEST(Deviation, OfAnythingNotComparableIsNan) {
  const std::vector<double> two = {1, 2};
  EXPECT_TRUE(std::isnan(deviation(std::vector<double>{1}, two).mean));
  EXPECT_TRUE(std::isnan(deviation({}, {}).mean));
  EXPECT_TRUE(std::isnan(deviation(std::vector<double>{1, NAN}, two).max));
  EXPECT_TRUE(std::isnan(deviation(std::vector<double>{INFINITY, 2}, two).mean));
}

TEST(Tolerance, IsFiveQuartersOfTheReferencesErrorAndAShareOfItsSize) {
  const std::vector<double> f64 = {10, -30}, f32 = {10.5, -30.5};
  EXPECT_DOUBLE_EQ(tolerance(f32, f64), 1.25 * 0.5 + 1e-7 * 20);
}

// ------------------------------------------------------------------------------------------
// reading

TEST(Golden, HoldsWhatTheFileHolds) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  const Golden golden = read(folder / "case");
  EXPECT_EQ(golden.horizon, 6);
  EXPECT_EQ(golden.num_variates, 3);
  EXPECT_EQ(golden.patch_size, 4);
  EXPECT_EQ(golden.num_components, 2);
  EXPECT_FALSE(golden.variate_labels);

  ASSERT_EQ(golden.batch.size(), 2U);
  const Series& second = golden.batch[1];
  EXPECT_EQ(second.num_variates, 3);
  EXPECT_EQ(second.length(), 5U);
  EXPECT_EQ(second.num_exogenous, 1);
  ASSERT_EQ(second.values.size(), 15U);
  EXPECT_EQ(second.values[0], -3 + 0.5F * 15);
  EXPECT_EQ(second.values[14], -3 + 0.5F * 29);
  EXPECT_EQ(second.group_ids[0], 3);
  EXPECT_EQ(second.group_ids[14], 5);
  EXPECT_EQ(second.mask[6], 0);  // the 21st of all
  EXPECT_EQ(second.mask[7], 1);
  ASSERT_EQ(second.future_exogenous.size(), 6U);
  EXPECT_EQ(second.future_exogenous[0], 53);

  ASSERT_EQ(golden.outputs.size(), 8U);
  EXPECT_EQ(output(golden, "mean").series_size, 6U);
  EXPECT_EQ(output(golden, "mean_no_cache").series_size, 6U);
  EXPECT_EQ(output(golden, "df").series_size, 0U);
  const GoldenOutput& df = output(golden, "df");
  ASSERT_EQ(df.f64.size(), 48U);
  EXPECT_EQ(df.f64[47] - df.f64[0], 23.5);
  EXPECT_EQ(df.f32[1], static_cast<float>(df.f64[1]));
}

TEST(Golden, TakesABooleanMaskAndASingleStudentT) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  TensorFile file(folder / "case/case.safetensors");
  file["padding_mask"].info.type = TensorType::boolean;
  for (const char* dtype : {"f32.", "f64."}) {
    file.remove(std::string(dtype) + "logits");
    for (const char* name : {"df", "component_loc", "component_scale"}) {
      TensorFile::Tensor& tensor = file[std::string(dtype) + name];
      tensor.info.shape[3] = 1;
      tensor.bytes.resize(tensor.bytes.size() / 2);
    }
  }
  file.save();
  const Golden golden = read(folder / "case");
  EXPECT_EQ(golden.num_components, 1);
  EXPECT_EQ(golden.outputs.size(), 7U);
}

TEST(Golden, MustFitItsModel) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  const Golden golden = read(folder / "case");
  ModelInfo model;
  model.patch_size = 4;
  model.num_components = 2;
  golden.check_fits(model);
  model.num_components = 3;
  expect_error(ErrorCode::corrupt_file, {"2 components", "3 components", "case.safetensors"},
               [&] { golden.check_fits(model); });
  model.num_components = 2;
  model.patch_size = 8;
  expect_error(ErrorCode::corrupt_file, {"4 steps", "8 steps"}, [&] { golden.check_fits(model); });
}

TEST(Golden, EveryCommittedOneIsRead) {
  const std::vector<std::string> paths = {kCommittedGoldens};
  const std::vector<GoldenFolder> folders = find_goldens(paths);
  EXPECT_GE(folders.size(), 14U);
  for (const GoldenFolder& folder : folders) {
    SCOPED_TRACE(folder.name);
    EXPECT_GE(read_golden(folder).outputs.size(), 7U);
  }
}

// -----------------------------------------------------------------------------------------
// refusals

struct Refusal {
  const char* name;
  std::function<void(TensorFile&)> spoil;
  std::vector<std::string_view> fragments;  // at most three
};

template <typename T>
std::function<void(TensorFile&)> value_at(const char* tensor, std::size_t index, T value) {
  return [=](TensorFile& file) {
    std::vector<T> values = file[tensor].values<T>();
    values.at(index) = value;
    file[tensor].set(values);
  };
}

std::function<void(TensorFile&)> without(const char* tensor) {
  return [=](TensorFile& file) { file.remove(tensor); };
}

std::function<void(TensorFile&)> shaped(const char* tensor, std::vector<std::int64_t> shape) {
  return [=](TensorFile& file) { file[tensor].info.shape = shape; };
}

std::function<void(TensorFile&)> says(const char* key, const char* value) {
  return [=](TensorFile& file) { file.set_metadata(key, value); };
}

std::function<void(TensorFile&)> scaled(const char* tensor, double factor, std::size_t from = 0,
                                        std::size_t count = SIZE_MAX) {
  return [=](TensorFile& file) {
    std::vector<double> values = file[tensor].values<double>();
    for (std::size_t i = from; i < values.size() && i - from < count; ++i) values[i] *= factor;
    file[tensor].set(values);
  };
}

std::vector<Refusal> refusals() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Refusal> list;
  for (const char* name : {"series", "padding_mask", "id_mask", "f32.loc", "f64.scale", "f32.df",
                           "f64.df", "f64.component_loc", "f32.component_scale", "f64.logits",
                           "f32.logits", "f64.mean", "f32.mean", "f64.mean_no_cache"}) {
    list.push_back({name, without(name), {"missing", name}});
  }
  list.push_back({"nan f64", value_at("f64.mean", 3, kNan), {"f64.mean", "nan", "index 3"}});
  list.push_back({"nan f32", value_at("f32.logits", 0, NAN), {"f32.logits", "nan"}});
  list.push_back(
      {"inf f64", value_at("f64.df", 1, double{INFINITY}), {"f64.df", "inf", "index 1"}});
  list.push_back({"nan series", value_at("series", 2, NAN), {"\"series\"", "nan"}});
  list.push_back({"inf future", value_at("future_exogenous", 2, INFINITY), {"future_exogenous"}});
  list.push_back({"mask 2",
                  value_at("padding_mask", 4, std::uint8_t{2}),
                  {"padding_mask", "holds 2", "index 4"}});
  list.push_back({"df below 2", value_at("f64.df", 5, 1.5), {"\"df\"", "1.5", "at least 2"}});
  list.push_back({"scale 0", value_at("f64.scale", 0, 0.0), {"\"scale\"", "positive"}});
  list.push_back({"component scale",
                  value_at("f32.component_scale", 0, -1.0F),
                  {"\"component_scale\"", "-1", "positive"}});

  list.push_back({"flat mean", shaped("f64.mean", {36}), {"f64.mean", "[36]", "[2, 3, 6]"}});
  list.push_back({"turned loc", shaped("f32.loc", {2, 4, 3}), {"f32.loc", "[2, 4, 3]"}});
  list.push_back({"flat df", shaped("f64.df", {2, 3, 8}), {"f64.df", "[2, 3, 8]", "components"}});
  list.push_back({"df of others", shaped("f64.df", {3, 2, 4, 2}), {"f64.df", "[3, 2, 4, 2]"}});
  list.push_back({"flat mask", shaped("padding_mask", {30}), {"padding_mask", "[30]"}});
  list.push_back(
      {"flat series", shaped("series", {30}), {"\"series\"", "[30]", "[batch, variates"}});
  list.push_back({"future of two", shaped("future_exogenous", {1, 2, 6}), {"future_exogenous"}});
  list.push_back({"nobody",
                  [](TensorFile& file) {
                    for (const char* name : {"series", "padding_mask", "id_mask"}) {
                      file[name].info.shape = {0, 3, 5};
                      file[name].bytes.clear();
                    }
                  },
                  {"\"series\"", "[0, 3, 5]", "at least 1"}});
  list.push_back({"wrong type",
                  [](TensorFile& file) { file["f64.mean"].info.type = TensorType::i64; },
                  {"f64.mean", "I64", "F64"}});
  list.push_back({"ids as floats",
                  [](TensorFile& file) { file["id_mask"].info.type = TensorType::f64; },
                  {"id_mask", "F64", "I64"}});
  list.push_back(
      {"unknown output",
       [](TensorFile& file) { file.add<double>("f64.variance", TensorType::f64, {1}, {1}); },
       {"f64.variance", "can be checked"}});

  list.push_back({"no metadata", [](TensorFile& file) { file.metadata.clear(); }, {"horizon"}});
  list.push_back({"other horizon", says("horizon", "5"), {"[2, 1, 6]", "[2, 1, 5]"}});
  for (const char* text : {"0", "-6", "6 ", "+6", "6.0", "1e1", "", "99999999999999999999"}) {
    list.push_back({"horizon", says("horizon", text), {"horizon", "whole number"}});
  }
  list.push_back({"all exogenous", says("num_exogenous", "3"), {"num_exogenous", "0 to 2"}});
  list.push_back({"labels", says("variate_labels", "maybe"), {"variate_labels", "maybe"}});
  list.push_back({"labels without", says("variate_labels", "true"), {"variate_labels", "mixed"}});

  // Scaled float64 values, a whole output or one series of it, would widen the bound.
  list.push_back({"scaled", scaled("f64.logits", 1.01), {"\"logits\"", "widen its own bound"}});
  list.push_back({"scaled series",
                  scaled("f64.mean", 1.002, 6, 6),
                  {"\"mean\" of series 1", "widen its own bound"}});
  list.push_back({"scaled uncached series",
                  scaled("f64.mean_no_cache", 0.998, 30, 6),
                  {"\"mean_no_cache\" of series 5"}});
  list.push_back({"overflow", scaled("f64.loc", 1e306), {"\"loc\"", "widen its own bound"}});
  list.push_back({"zeros", scaled("f64.mean", 0), {"\"mean\"", "widen its own bound"}});
  list.push_back(
      {"swapped",
       [](TensorFile& file) { std::swap(file["f64.df"].bytes, file["f64.logits"].bytes); },
       {"widen its own bound"}});
  return list;
}

TEST(Golden, RefusesWhatIsNoEvidence) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.name);
    const TemporaryFolder folder;
    MadeGolden::write(folder / "case");
    TensorFile file(folder / "case/case.safetensors");
    refusal.spoil(file);
    file.save();
    std::vector<std::string_view> fragments = refusal.fragments;
    fragments.resize(3, "case.safetensors");
    expect_error(ErrorCode::corrupt_file, {fragments[0], fragments[1], fragments[2]},
                 [&] { read(folder / "case"); });
  }
}

// One whole series carries an error that the average over all of them would hide.
TEST(Golden, JudgesEachSeriesOfAMeanAlone) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  TensorFile file(folder / "case/case.safetensors");
  scaled("f64.mean", 1.002, 6, 6)(file);
  const std::vector<double> f64 = file["f64.mean"].values<double>();
  const std::vector<float> f32 = file["f32.mean"].values<float>();
  const std::vector<double> wide(f32.begin(), f32.end());
  EXPECT_LT(deviation(wide, f64).mean, kMaxOwnError * mean_size(f64));
  file.save();
  expect_error(ErrorCode::corrupt_file, {"series 1"}, [&] { read(folder / "case"); });
}

TEST(Golden, RefusesADamagedFile) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  const std::string path = folder / "case/case.safetensors";
  const std::string bytes = io::contents_of(path);
  for (const std::size_t size :
       {bytes.size() - 1, bytes.size() / 2, std::size_t{9}, std::size_t{0}}) {
    io::put(path, std::string_view(bytes).substr(0, size));
    expect_error(ErrorCode::corrupt_file, {"case.safetensors"}, [&] { read(folder / "case"); });
  }
  std::filesystem::resize_file(path, std::uintmax_t{2} << 30);  // sparse: no disk is taken
  expect_error(ErrorCode::corrupt_file, {"case.safetensors"}, [&] { read(folder / "case"); });
}

TEST(Golden, WithVariateLabelsMustHaveThemInItsWeights) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  TensorFile weights(folder / "case/model.safetensors");
  weights.add<float>("model.target_variate_label", TensorType::f32, {1}, {1});
  weights.save();
  expect_error(ErrorCode::corrupt_file, {"variate_labels", "false"},
               [&] { read(folder / "case"); });
  TensorFile file(folder / "case/case.safetensors");
  file.set_metadata("variate_labels", "true");
  file.save();
  EXPECT_TRUE(read(folder / "case").variate_labels);
}

// ------------------------------------------------------------------------------------------
// folders

std::vector<std::string> names(const std::vector<GoldenFolder>& folders) {
  std::vector<std::string> result;
  for (const GoldenFolder& folder : folders) result.push_back(folder.name);
  return result;
}

std::vector<GoldenFolder> find(const std::vector<std::string>& paths) {
  return find_goldens(paths);
}

TEST(FindGoldens, TakesACaseOrAFolderOfCases) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "all/b");
  MadeGolden::write(folder / "all/a");
  std::filesystem::create_directories(folder / "all/notes");
  io::put(folder / "all/README.md", "goldens");
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(find({folder / "all"})), (Names{"a", "b"}));
  EXPECT_EQ(names(find({folder / "all/b"})), (Names{"b"}));
  EXPECT_EQ(names(find({folder / "all/b/", folder / "all"})), (Names{"b", "a"}));
}

TEST(FindGoldens, TellsTwoOfOneNameApart) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "x/case");
  MadeGolden::write(folder / "y/case");
  EXPECT_EQ(names(find({folder / "x", folder / "y"})),
            (std::vector<std::string>{"case", "case~2"}));
}

TEST(FindGoldens, RefusesToFindNothing) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "empty/inner");
  io::put(folder / "file", "");
  MadeGolden::write(folder / "case");
  expect_error(ErrorCode::not_found, {"no such folder", "nowhere"},
               [&] { find({folder / "case", folder / "nowhere"}); });
  expect_error(ErrorCode::not_found, {"holds no golden", "empty"},
               [&] { find({folder / "empty"}); });
  expect_error(ErrorCode::not_found, {"is no folder"}, [&] { find({folder / "file"}); });
}

// A golden that lost its case is not passed over in silence.
TEST(FindGoldens, MissesACaseThatIsGone) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "all/a");
  MadeGolden::write(folder / "all/b");
  std::filesystem::remove(folder / "all/b/case.safetensors");
  const std::vector<GoldenFolder> folders = find({folder / "all"});
  ASSERT_EQ(folders.size(), 2U);
  expect_error(ErrorCode::not_found, {"b/case.safetensors"}, [&] { read_golden(folders[1]); });
}

}  // namespace
}  // namespace toto::validate
