// Goldens as evidence: what is in them comes out unchanged, and whatever could make a wrong engine
// look right is refused.
#include "validate/golden.h"

#include <cmath>
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

// -------------------------------------------------------------------------------------- arithmetic

TEST(Deviation, IsMeanAndMaximum) {
  const Deviation result = deviation(std::vector<double>{1, 2, 7}, std::vector<double>{1, 1, 5});
  EXPECT_DOUBLE_EQ(result.mean, 1);
  EXPECT_DOUBLE_EQ(result.max, 2);
}

TEST(Deviation, IsNanForIncomparableValues) {
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

// ----------------------------------------------------------------------------------------- reading

TEST(Golden, ReadsItsFile) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  const Golden golden = read(folder / "case");
  EXPECT_EQ(golden.horizon, 6);
  EXPECT_EQ(golden.num_variates, 3);
  EXPECT_EQ(golden.architecture, "toto1");
  ASSERT_EQ(golden.sizes.size(), 2U);
  EXPECT_EQ(golden.sizes[0].value, 4);
  EXPECT_EQ(golden.sizes[1].value, 2);
  EXPECT_EQ(golden.variate_labels, false);

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

TEST(Golden, AcceptsABooleanMaskAndASingleStudentT) {
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
  EXPECT_EQ(golden.sizes[1].value, 1);
  EXPECT_EQ(golden.outputs.size(), 7U);
}

TEST(Golden, MustFitItsModel) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  const Golden golden = read(folder / "case");
  ModelInfo model;
  model.facts.architecture = "toto1";
  model.shape = {{"patch_size", 4}, {"embed_dim", 32}, {"num_components", 2}};
  golden.check_fits(model);
  model.shape[2].value = 3;
  expect_error(ErrorCode::corrupt_file,
               {"num_components 2", "num_components 3", "case.safetensors"},
               [&] { golden.check_fits(model); });
  model.shape = {{"patch_size", 8}, {"num_components", 2}};
  expect_error(ErrorCode::corrupt_file, {"patch_size 4", "patch_size 8"},
               [&] { golden.check_fits(model); });
  model.shape[0].value = 4;
  model.facts.architecture = "another";
  expect_error(ErrorCode::corrupt_file, {"toto1", "another"}, [&] { golden.check_fits(model); });
}

TEST(Golden, ReadsEveryCommittedOne) {
  const std::vector<std::string> paths = {kCommittedGoldens};
  const std::vector<GoldenFolder> folders = find_goldens(paths);
  EXPECT_GE(folders.size(), 14U);
  for (const GoldenFolder& folder : folders) {
    SCOPED_TRACE(folder.name);
    const Golden golden = read_golden(folder);
    // Format 2: loc, scale, raw, quantiles, and those of blocks.
    const std::size_t format_2 = golden.reading.block > 0 ? 5 : 4;
    EXPECT_GE(golden.outputs.size(), golden.architecture == "toto1" ? 7U : format_2);
  }
}

// ---------------------------------------------------------------------------------------- refusals

// A golden spoiled in this way is refused as corrupt, with a sentence that holds the fragments.
template <typename Spoil>
void expect_refused(std::initializer_list<std::string_view> fragments, const Spoil& spoil) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "case");
  TensorFile file(folder / "case/case.safetensors");
  spoil(file);
  file.save();
  expect_error(ErrorCode::corrupt_file, fragments, [&] { read(folder / "case"); });
  expect_error(ErrorCode::corrupt_file, {"case.safetensors: "}, [&] { read(folder / "case"); });
}

template <typename T>
auto value_at(const char* tensor, std::size_t index, T value) {
  return [=](TensorFile& file) {
    std::vector<T> values = file[tensor].values<T>();
    values.at(index) = value;
    file[tensor].set(values);
  };
}

auto shaped(const char* tensor, const std::vector<std::int64_t>& shape) {
  return [=](TensorFile& file) { file[tensor].info.shape = shape; };
}

auto typed(const char* tensor, TensorType type) {
  return [=](TensorFile& file) { file[tensor].info.type = type; };
}

auto says(const char* key, const char* value) {
  return [=](TensorFile& file) { file.set_metadata(key, value); };
}

auto scaled(const char* tensor, double factor, std::size_t from = 0, std::size_t count = SIZE_MAX) {
  return [=](TensorFile& file) {
    std::vector<double> values = file[tensor].values<double>();
    for (std::size_t i = from; i < values.size() && i - from < count; ++i) values[i] *= factor;
    file[tensor].set(values);
  };
}

TEST(GoldenRefuses, AMissingTensor) {
  for (const char* name : {"series", "padding_mask", "id_mask", "f32.loc", "f64.scale", "f32.df",
                           "f64.df", "f64.component_loc", "f32.component_scale", "f64.logits",
                           "f32.logits", "f64.mean", "f32.mean", "f64.mean_no_cache"}) {
    expect_refused({"missing", name}, [name](TensorFile& file) { file.remove(name); });
  }
}

TEST(GoldenRefuses, ValuesThatProveNothing) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  expect_refused({"f64.mean", "nan", "index 3"}, value_at("f64.mean", 3, kNan));
  expect_refused({"f32.logits", "nan"}, value_at("f32.logits", 0, NAN));
  expect_refused({"f64.df", "inf", "index 1"}, value_at("f64.df", 1, double{INFINITY}));
  expect_refused({"\"series\"", "nan"}, value_at("series", 2, NAN));
  expect_refused({"future_exogenous", "inf"}, value_at("future_exogenous", 2, INFINITY));
  expect_refused({"padding_mask", "holds 2", "index 4"},
                 value_at("padding_mask", 4, std::uint8_t{2}));
  expect_refused({"\"df\"", "1.5", "at least 2"}, value_at("f64.df", 5, 1.5));
  expect_refused({"\"scale\"", "positive"}, value_at("f64.scale", 0, 0.0));
  expect_refused({"\"component_scale\"", "-1", "positive"},
                 value_at("f32.component_scale", 0, -1.0F));
}

TEST(GoldenRefuses, WrongShapesAndTypes) {
  expect_refused({"f64.mean", "[36]", "[2, 3, 6]"}, shaped("f64.mean", {36}));
  expect_refused({"f32.loc", "[2, 4, 3]"}, shaped("f32.loc", {2, 4, 3}));
  expect_refused({"f64.df", "[2, 3, 8]", "components"}, shaped("f64.df", {2, 3, 8}));
  expect_refused({"f64.df", "[3, 2, 4, 2]"}, shaped("f64.df", {3, 2, 4, 2}));
  expect_refused({"padding_mask", "[30]"}, shaped("padding_mask", {30}));
  expect_refused({"\"series\"", "[30]", "[batch, variates"}, shaped("series", {30}));
  expect_refused({"future_exogenous", "[2, 1, 6]"}, shaped("future_exogenous", {1, 2, 6}));
  expect_refused({"\"series\"", "[0, 3, 5]", "at least 1"}, [](TensorFile& file) {
    for (const char* name : {"series", "padding_mask", "id_mask"}) {
      file[name].info.shape = {0, 3, 5};
      file[name].bytes.clear();
    }
  });
  expect_refused({"f64.mean", "I64", "F64"}, typed("f64.mean", TensorType::i64));
  expect_refused({"id_mask", "F64", "I64"}, typed("id_mask", TensorType::f64));
  expect_refused({"f64.variance", "can be checked"}, [](TensorFile& file) {
    file.add<double>("f64.variance", TensorType::f64, {1}, {1});
  });
}

TEST(GoldenRefuses, WrongMetadata) {
  expect_refused({"horizon", "missing"}, [](TensorFile& file) { file.metadata.clear(); });
  expect_refused({"[2, 1, 6]", "[2, 1, 5]"}, says("horizon", "5"));
  for (const char* text : {"0", "-6", "6 ", "+6", "6.0", "1e1", "", "99999999999999999999"}) {
    expect_refused({"horizon", "whole number"}, says("horizon", text));
  }
  expect_refused({"num_exogenous", "0 to 2"}, says("num_exogenous", "3"));
  expect_refused({"variate_labels", "maybe"}, says("variate_labels", "maybe"));
  expect_refused({"variate_labels", "mixed"}, says("variate_labels", "true"));
}

// Scaled float64 values, of a whole output or of one series of it, are a wider bound.
TEST(GoldenRefuses, ABoundItWidensItself) {
  constexpr const char* kWhy = "widen its own bound";
  expect_refused({"\"logits\"", kWhy}, scaled("f64.logits", 1.01));
  expect_refused({"\"mean\" of series 0, variate 1", kWhy}, scaled("f64.mean", 1.002, 6, 6));
  expect_refused({"\"mean_no_cache\" of series 1, variate 2", kWhy},
                 scaled("f64.mean_no_cache", 0.998, 30, 6));
  expect_refused({"\"loc\"", kWhy}, scaled("f64.loc", 1e306));  // the sum overflows
  expect_refused({"\"mean\"", kWhy}, scaled("f64.mean", 0));
  expect_refused(
      {kWhy}, [](TensorFile& file) { std::swap(file["f64.df"].bytes, file["f64.logits"].bytes); });
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
  expect_error(ErrorCode::corrupt_file, {"series 0, variate 1"}, [&] { read(folder / "case"); });
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

// ----------------------------------------------------------------------------------------- folders

std::vector<std::string> names(const std::vector<GoldenFolder>& folders) {
  std::vector<std::string> result;
  result.reserve(folders.size());
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

TEST(FindGoldens, NumbersFoldersOfTheSameName) {
  const TemporaryFolder folder;
  MadeGolden::write(folder / "x/case");
  MadeGolden::write(folder / "y/case");
  EXPECT_EQ(names(find({folder / "x", folder / "y"})),
            (std::vector<std::string>{"case", "case~2"}));
}

TEST(FindGoldens, RefusesFoldersWithoutGoldens) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "empty/inner");
  io::put(folder / "file", "");
  MadeGolden::write(folder / "case");
  expect_error(ErrorCode::not_found, {"no such folder", "nowhere"},
               [&] { find({folder / "case", folder / "nowhere"}); });
  expect_error(ErrorCode::not_found, {"has no golden", "empty"}, [&] { find({folder / "empty"}); });
  expect_error(ErrorCode::not_found, {"is not a folder"}, [&] { find({folder / "file"}); });
}

// A golden without its case is not skipped silently.
TEST(FindGoldens, ReportsAMissingCase) {
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
