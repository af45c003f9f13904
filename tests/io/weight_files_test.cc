#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/sha256.h"
#include "io_fixture.h"

namespace toto::io {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kFirst = "model-00001-of-00002.safetensors";
constexpr std::string_view kSecond = "model-00002-of-00002.safetensors";

// A file of one-element F32 tensors of these names.
void write_shard(const std::string& path, const std::vector<std::string>& names,
                 const Metadata& metadata = {}) {
  std::vector<TensorInfo> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) {
    tensors.push_back({.name = name, .type = TensorType::f32, .shape = {1}});
  }
  SafetensorsWriter writer(path, tensors, metadata);
  const std::vector<float> data(names.size(), 1.0F);
  writer.append(data.data(), data.size() * sizeof(float));
  writer.commit();
}

std::string digest_of(std::string_view bytes) {
  Sha256 hash(Sha256::Code::portable);
  hash.update(std::as_bytes(std::span(bytes)));
  return hash.hex_digest();
}

class WeightFilesTest : public testing::Test {
 protected:
  // Two shards and a correct index, modified by `change`.
  void write_model(const std::function<void(std::map<std::string, std::string>&)>& change = {},
                   std::string_view total_size = "12") {
    write_shard(folder_ / kFirst, {"a", "c"}, {{"format", "pt"}});
    write_shard(folder_ / kSecond, {"b"});
    std::map<std::string, std::string> map = {
        {"a", std::string(kFirst)}, {"b", std::string(kSecond)}, {"c", std::string(kFirst)}};
    if (change) change(map);
    JsonWriter writer;
    writer.begin_object();
    if (!total_size.empty()) {
      writer.key("metadata").begin_object().key("total_size");
      writer.value(parse_json(total_size, "total_size")).end_object();
    }
    writer.key("weight_map").begin_object();
    for (const auto& [name, shard] : map) writer.field(name, shard);
    put(folder_ / kIndex, writer.end_object().end_object().take());
  }

  void expect_refused(ErrorCode code, std::initializer_list<std::string_view> fragments) {
    expect_error(code, fragments, [&] { WeightFiles::open(folder_.path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(WeightFilesTest, OpensOneFile) {
  write_shard(folder_ / kSingle, {"x", "y"}, {{"seed", "7"}});
  const WeightFiles weights = WeightFiles::open(folder_.path());
  const std::string bytes = contents_of(folder_ / kSingle);
  ASSERT_EQ(weights.entries().size(), 2U);
  EXPECT_EQ(weights.entries()[1].tensor->name, "y");
  EXPECT_EQ(weights.total_bytes(), bytes.size());
  EXPECT_EQ(weights.sha256(), digest_of(bytes));
  EXPECT_EQ(*weights.metadata("seed"), "7");
  EXPECT_EQ(weights.metadata("absent"), nullptr);
}

TEST_F(WeightFilesTest, OpensShards) {
  write_model();
  WeightFiles opened = WeightFiles::open(folder_.path());
  const WeightFiles weights = std::move(opened);
  ASSERT_EQ(weights.entries().size(), 3U);
  float value = 0;
  for (const auto& [file, tensor] : weights.entries()) {
    file->read_floats(*tensor, 0, std::span(&value, 1));
    EXPECT_EQ(value, 1.0F);
  }
  EXPECT_EQ(weights.files().size(), 2U);
  EXPECT_EQ(weights.sha256(),
            digest_of(contents_of(folder_ / kFirst) + contents_of(folder_ / kSecond)));
  EXPECT_EQ(*weights.metadata("format"), "pt");
}

TEST_F(WeightFilesTest, AcceptsAnIndexWithoutTotalOrWithARealOne) {
  write_model({}, "");
  EXPECT_EQ(WeightFiles::open(folder_.path()).entries().size(), 3U);
  write_model({}, "12.0");
  EXPECT_EQ(WeightFiles::open(folder_.path()).entries().size(), 3U);
}

TEST_F(WeightFilesTest, PrefersTheOneFile) {
  write_model();
  write_shard(folder_ / kSingle, {"x"});
  EXPECT_EQ(WeightFiles::open(folder_.path()).entries().size(), 1U);
}

TEST_F(WeightFilesTest, NamesMissingFiles) {
  expect_error(ErrorCode::not_found, {folder_ / "absent", "no such folder"},
               [&] { WeightFiles::open(folder_ / "absent"); });
  expect_refused(ErrorCode::not_found, {folder_.path(), "neither", kSingle, kIndex});
  write_model();
  std::filesystem::remove(folder_ / kSecond);
  expect_refused(ErrorCode::not_found, {folder_ / kSecond, "no such file", "incomplete"});
}

TEST_F(WeightFilesTest, NeverLeavesTheFolder) {
  write_shard(folder_ / "outside.safetensors", {"b"});
  std::filesystem::create_directory(folder_ / "sub");
  const std::vector<std::string> names = {"../outside.safetensors",
                                          "sub/x.safetensors",
                                          folder_ / "outside.safetensors",
                                          "..",
                                          ".",
                                          "",
                                          "..\\outside",
                                          "x\n.safetensors",
                                          std::string("x\0y", 3),
                                          std::string(256, 'x')};
  for (const std::string& name : names) {
    write_model([&](auto& map) { map["b"] = name; });
    expect_refused(ErrorCode::corrupt_file,
                   {folder_ / kIndex, "tensor \"b\"", quoted(name), "plain name of a file"});
  }
}

TEST_F(WeightFilesTest, ChecksThatIndexAndShardsAgree) {
  write_model([](auto& map) { map["d"] = kSecond; });
  expect_refused(ErrorCode::corrupt_file,
                 {folder_ / kIndex, "tensor \"d\"", folder_ / kSecond, "does not hold it"});
  write_model([](auto& map) { map.erase("c"); });
  expect_refused(ErrorCode::corrupt_file, {folder_ / kFirst, "tensor \"c\"", "does not name it"});
  write_model([](auto& map) { map["c"] = kSecond; });
  expect_refused(ErrorCode::corrupt_file, {folder_ / kFirst, "tensor \"c\"", "it is in", kSecond});
  write_model({}, "13");
  expect_refused(ErrorCode::corrupt_file, {folder_ / kIndex, "total_size is 13", "hold 12 bytes"});
  write_model({}, "\"12\"");
  expect_refused(ErrorCode::corrupt_file, {folder_ / kIndex, "total_size is not a number"});
}

TEST_F(WeightFilesTest, RefusesInvalidIndexes) {
  const std::string path = folder_ / kIndex;
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", "there is no value"},
      {"{\"weight_map\": {\"a\": \"x\", \"a\": \"y\"}}", "duplicate key \"a\""},
      {"{}", "has no weight_map"},
      {"{\"weight_map\": {}}", "has no weight_map"},
      {"{\"weight_map\": [\"a\"]}", "has no weight_map"},
      {"[]", "has no weight_map"},
      {"{\"weight_map\": {\"a\": 1}}", "tensor \"a\": its file is 1"}};
  for (const auto& [text, why] : cases) {
    put(path, text);
    expect_refused(ErrorCode::corrupt_file, {path, why});
  }
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  expect_refused(ErrorCode::corrupt_file, {path, "a folder"});
}

TEST_F(WeightFilesTest, NamesTheDamagedShard) {
  write_model();
  const std::string bytes = contents_of(folder_ / kSecond);
  put(folder_ / kSecond, bytes.substr(0, bytes.size() - 1));
  expect_refused(ErrorCode::corrupt_file, {folder_ / kSecond, "tensor \"b\"", "truncated"});
}

TEST_F(WeightFilesTest, StaysFastForAHundredThousandTensors) {
  std::vector<std::string> names;
  names.reserve(100'000);
  for (int i = 0; i < 100'000; ++i) names.push_back(fmt::format("model.layers.{}.weight", i));
  write_shard(folder_ / kFirst, names);
  JsonWriter writer(JsonLayout::compact);
  writer.begin_object().key("weight_map").begin_object();
  for (const std::string& name : names) writer.field(name, kFirst);
  put(folder_ / kIndex, writer.end_object().end_object().take());
  const double start = cpu_seconds();
  EXPECT_EQ(WeightFiles::open(folder_.path()).entries().size(), 100'000U);
  EXPECT_LT(cpu_seconds() - start, kHangSeconds);  // 0.5 s; comparing all pairs would take minutes
}

}  // namespace
}  // namespace toto::io
