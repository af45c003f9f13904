// Toto 2.0: config, tensors and packing. The numbers themselves are checked by the goldens.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/threads.h"
#include "io/sha256.h"
#include "kernels/kernels.h"
#include "model/checkpoint.h"
#include "model/random_model.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::TemporaryFolder;
using testing::walk;
using testing::write_text;

constexpr const char* kSmall = R"({"patch_size": 8, "d_model": 16, "num_heads": 2, "num_layers": 2,
"layer_group_size": 2, "num_variate_layers_per_group": 1, "variate_layer_first": false,
"residual_attn_ratio": 5.136, "qk_norm": false, "per_dim_scale": true, "use_xpos": true})";

std::unique_ptr<Architecture> parsed(const std::string& text) {
  std::vector<std::string> warnings;
  return parse_architecture(text, "config.json", warnings);
}

// The small config with one key replaced or added.
std::string with(const std::string& key, const std::string& value) {
  std::string text = kSmall;
  const std::size_t at = text.find("\"" + key + "\"");
  if (at != std::string::npos) {
    const std::size_t end = text.find_first_of(",}", at);
    return text.replace(at, end - at, "\"" + key + "\": " + value);
  }
  return text.insert(1, "\"" + key + "\": " + value + ", ");
}

const ModelPreset& preset(std::string_view name) {
  for (const ArchitectureRow& row : architectures()) {
    for (const ModelPreset& found : row.presets) {
      if (found.name == name) return found;
    }
  }
  fail(ErrorCode::internal, "no preset {}", name);
}

TEST(Toto2, PresetsHaveThePublishedSizes) {
  const auto parameters = [](const char* name) {
    std::int64_t total = 0;
    const auto architecture = parsed(std::string(preset(name).config_json));
    for (const TensorSpec& spec : architecture->tensors([](auto) { return false; }, "")) {
      total += spec.num_elements();
    }
    return total;
  };
  // Two taus per layer are buffers: the published counts leave them out.
  EXPECT_EQ(parameters("toto2-4m"), 4'144'448 + 2 * 4);
  EXPECT_EQ(parameters("toto2-22m"), 21'915'584 + 2 * 6);
  EXPECT_EQ(parameters("toto2-313m"), 312'684'608 + 2 * 24);
  EXPECT_EQ(parameters("toto2-1B"), 1'041'033'024 + 2 * 36);
  EXPECT_EQ(parameters("toto2-2.5B"), 2'454'281'792 + 2 * 48);
}

TEST(Toto2, FillsAbsentKeysLikeTheReference) {
  const std::string text = parsed(kSmall)->config_json();
  for (const char* part : {R"("d_ff": 48)", R"("qk_dim": 8)", R"("v_dim": 8)", R"("num_groups": 2)",
                           R"("norm_eps": 5e-05)", R"("attn_bias": false)",
                           R"("norm_include_weight": false)", R"("residual_mult": 1)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  }
  EXPECT_NE(parsed(with("norm_include_weight", "true"))
                ->config_json()
                .find(R"("qk_norm_include_weight": true)"),
            std::string::npos);
  EXPECT_EQ(parsed(with("d_ff", "null"))->config_json(), text) << "null is absent";
}

TEST(Toto2, RefusesWhatTheReferenceCannotRun) {
  const auto message = [](const std::string& key, const std::string& value) {
    return error_of([&] { parsed(with(key, value)); });
  };
  EXPECT_NE(message("num_heads", "3").find("not divisible by num_heads 3"), std::string::npos);
  EXPECT_NE(message("num_groups", "3").find("not divisible by num_groups 3"), std::string::npos);
  EXPECT_NE(message("num_output_patches", "2").find("expected 1"), std::string::npos);
  EXPECT_NE(message("layer_group_size", "0").find("layer_group_size"), std::string::npos);
  EXPECT_NE(message("layer_group_size", "3").find("not divisible by layer_group_size 3"),
            std::string::npos);
  EXPECT_NE(message("num_variate_layers_per_group", "3").find("at most layer_group_size"),
            std::string::npos);
  EXPECT_NE(message("qk_dim", "6").find("multiple of 4"), std::string::npos);
  EXPECT_NE(message("dropout_p", "0.1").find("dropout_p"), std::string::npos);
  EXPECT_NE(message("norm_eps", "0").find("norm_eps"), std::string::npos);
  std::string without = kSmall;
  without.replace(without.find("residual_attn_ratio"), 19, "something");
  EXPECT_NE(error_of([&] { parsed(without); }).find("\"residual_attn_ratio\" is missing"),
            std::string::npos);
}

class Toto2FilesTest : public ::testing::Test {
 protected:
  // A made model with some tensors renamed, reshaped or changed by `change`.
  std::string model(const std::function<void(std::string& name, std::vector<std::int64_t>& shape,
                                             std::vector<float>& values)>& change) {
    const auto architecture = parsed(kSmall);
    const std::string made = folder_ / "made";
    make_model(*architecture, 5, io::TensorType::f32, made);
    const Checkpoint checkpoint = Checkpoint::open(made);
    std::vector<io::TensorInfo> tensors;
    std::vector<std::vector<float>> contents;
    for (const TensorSpec& spec :
         architecture->tensors([&](auto name) { return checkpoint.has(name); }, made)) {
      std::string name = spec.name;
      std::vector<std::int64_t> shape = spec.shape;
      std::vector<float> values = checkpoint.read(name);
      change(name, shape, values);
      if (name.empty()) continue;
      tensors.push_back({.name = name, .type = io::TensorType::f32, .shape = shape});
      contents.push_back(values);
    }
    const std::string path = folder_ / "changed";
    write_text(path + "/config.json", kSmall);
    io::SafetensorsWriter writer(path + "/model.safetensors", tensors, {});
    for (const auto& values : contents) writer.append(values.data(), values.size() * 4);
    writer.commit();
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(Toto2FilesTest, TausAreThereTogetherOrFollowFromTheConfig) {
  const std::string all = model([](auto&, auto&, auto&) {});
  const Forecast expected = Engine::load(all).forecast(walk(1, 60), {.horizon = 20});
  const std::string none = model([](std::string& name, auto&, auto&) {
    if (name.ends_with("_tau")) name.clear();
  });
  EXPECT_EQ(Engine::load(none).forecast(walk(1, 60), {.horizon = 20}).quantiles,
            expected.quantiles);
  const std::string some = model([](std::string& name, auto&, auto&) {
    if (name == "transformer.layers.1.mlp_tau") name.clear();
  });
  EXPECT_NE(error_of([&] {
              Engine::load(some);
            }).find("transformer.layers.1.mlp_tau is missing while 3 other taus"),
            std::string::npos);
}

TEST_F(Toto2FilesTest, RefusesTausOfAnotherShapeOrThatAreNotNumbers) {
  const std::string shaped = model([](std::string& name, std::vector<std::int64_t>& shape, auto&) {
    if (name.ends_with("attn_tau")) shape = {1};
  });
  EXPECT_NE(error_of([&] { Engine::load(shaped); }).find("shape [1]"), std::string::npos);
  const std::string nan = model([](std::string& name, auto&, std::vector<float>& values) {
    if (name.ends_with("mlp_tau")) values[0] = NAN;
  });
  for (const Mode mode : {Mode::reference, Mode::standard}) {
    ErrorCode code = ErrorCode::internal;
    error_of([&] { Engine::load(nan, {.mode = mode}); }, &code);
    EXPECT_EQ(code, ErrorCode::corrupt_file);
  }
  const std::string zero = model([](std::string& name, auto&, std::vector<float>& values) {
    if (name.ends_with("mlp_tau")) values[0] = 0;
  });
  EXPECT_EQ(error_of([&] { Engine::load(zero).forecast(walk(1, 60)); }), "no error");
}

TEST_F(Toto2FilesTest, RefusesAConfigOfTheOtherVersion) {
  const std::string path = model([](auto&, auto&, auto&) {});
  write_text(path + "/config.json", std::string(preset("mini").config_json));
  ErrorCode code = ErrorCode::internal;
  EXPECT_NE(error_of([&] { Engine::load(path); }, &code).find("is missing"), std::string::npos);
  EXPECT_EQ(code, ErrorCode::corrupt_file);
}

TEST_F(Toto2FilesTest, RefusesEightBitWeights) {
  ErrorCode code = ErrorCode::internal;
  const std::string path = model([](auto&, auto&, auto&) {});
  EXPECT_NE(
      error_of([&] { Engine::load(path, {.dtype = DType::int8}); }, &code).find("not accurate"),
      std::string::npos);
  EXPECT_EQ(code, ErrorCode::invalid_argument);
}

// Increase the packing version if this changes: cached weights of earlier builds are then packed
// again.
TEST_F(Toto2FilesTest, PacksToTheBytesOfItsVersion) {
  const std::string path = model([](auto&, auto&, auto&) {});
  const Checkpoint checkpoint = Checkpoint::open(path);
  ThreadPool pool(2);
  const auto packed =
      checkpoint.architecture().pack(checkpoint, DType::f32, kernels_for(Isa::reference), pool);
  io::Sha256 sum;
  for (const auto array : packed->arrays()) sum.update(array);
  EXPECT_EQ(checkpoint.architecture().packing_version(), 1);
  EXPECT_EQ(sum.hex_digest().substr(0, 16), "f53b117c3ac91b2a");
}

}  // namespace
}  // namespace toto
