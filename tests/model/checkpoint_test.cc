// Model folders: accepted ones, and error messages for the others.
#include "model/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/rotary.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::made_model;
using testing::small_config;
using testing::TemporaryFolder;
using testing::text_of;
using testing::walk;
using testing::write_text;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// A copy of a checkpoint with its tensors changed by `edit(name, data)`; an empty name drops one.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> data;
};

std::string edited_model(const std::string& from, const std::string& to,
                         const std::function<void(std::vector<Tensor>&)>& edit) {
  const Checkpoint checkpoint = Checkpoint::open(from);
  std::vector<Tensor> tensors;
  const auto has = [&](std::string_view name) { return checkpoint.has(name); };
  for (const TensorSpec& spec : checkpoint.architecture().tensors(has, from)) {
    tensors.push_back({"model." + spec.name, spec.shape, checkpoint.read(spec.name)});
  }
  edit(tensors);
  std::vector<io::TensorInfo> infos;
  for (const Tensor& tensor : tensors)
    infos.push_back({.name = tensor.name, .shape = tensor.shape});
  write_text(to + "/config.json", text_of(from + "/config.json"));
  io::SafetensorsWriter writer(to + "/model.safetensors", infos, {});
  for (const Tensor& tensor : tensors)
    writer.append(tensor.data.data(), tensor.data.size() * sizeof(float));
  writer.commit();
  return to;
}

class CheckpointTest : public ::testing::Test {
 protected:
  std::string refusal(const std::string& model) {
    code_ = ErrorCode::internal;
    return error_of([&] { Engine::load(model); }, &code_);
  }
  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
  ErrorCode code_ = ErrorCode::internal;
};

TEST_F(CheckpointTest, ParametersOfTheBaseModel) {
  EXPECT_EQ(base_config().num_parameters(false), 151'306'080);
}

TEST_F(CheckpointTest, ConfigRoundTrip) {
  std::vector<std::string> warnings;
  const Toto1Config config =
      parse_config(toto1_config_json(base_config()), "config.json", warnings);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(config.num_parameters(false), 151'306'080);
  EXPECT_EQ(config.scaler, Toto1Scaler::causal_patch_std_mean);
  EXPECT_TRUE(config.is_spacewise(11));
  EXPECT_FALSE(config.is_spacewise(0));
}

TEST_F(CheckpointTest, RefusesInvalidConfigs) {
  const std::string good = toto1_config_json(base_config());
  struct Case {
    std::string from, to, expected;
  };
  const std::vector<Case> cases = {
      {"\"patch_size\": 64", "\"patch_size\": 0", "patch_size"},
      {"\"patch_size\": 64", "\"patch_size\": -1", "patch_size"},
      {"\"patch_size\": 64", "\"patch_size\": 2147483648", "patch_size"},
      {"\"patch_size\": 64", "\"patch_size\": \"64\"", "patch_size"},
      {"\"patch_size\": 64", "\"patch_size\": 64.5", "patch_size"},
      {"\"patch_size\": 64", "\"patch_size\": null", "patch_size"},
      {"\"patch_size\": 64", "\"patch\": 64", "patch_size"},
      {"\"patch_size\": 64", "\"patch_size\": 1e400", "config"},
      {"\"patch_size\": 64", "\"patch_size\": 64, \"patch_size\": 64", "patch_size"},
      {"\"stride\": 64", "\"stride\": 32", "stride"},
      {"\"num_layers\": 12", "\"num_layers\": 1000000000", "num_layers"},
      {"\"num_layers\": 12", "\"num_layers\": 10", "spacewise_every_n_layers"},
      {"\"num_heads\": 12", "\"num_heads\": 11", "divisible"},
      {"\"num_heads\": 12", "\"num_heads\": 256", "even"},
      {"\"embed_dim\": 768", "\"embed_dim\": 61440", "parameters"},
      {"CausalPatchStdMeanScaler", "StdMinScaler", "scaler_cls"},
      {"MixtureOfStudentTsOutput", "NormalOutput", "distribution"},
      {"\"k_components\": 24", "\"k_components\": 0", "k_components"},
      {"\"spacewise_first\": false", "\"spacewise_first\": 0", "spacewise_first"},
      {"\"scale_factor_exponent\": 10", "\"scale_factor_exponent\": \"x\"",
       "scale_factor_exponent"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> warnings;
    const std::string sentence =
        error_of([&] { parse_config(replaced(good, c.from, c.to), "the config", warnings); });
    EXPECT_NE(sentence.find(c.expected), std::string::npos) << c.to << ": " << sentence;
  }
  std::vector<std::string> warnings;
  for (const std::string& text : {std::string(), std::string("["), std::string("[]"),
                                  std::string("{}"), std::string(100'000, '[')}) {
    EXPECT_NE(error_of([&] { parse_config(text, "the config", warnings); }), "no error");
  }
  parse_config("\xEF\xBB\xBF" + replaced(good, "\"dropout\"", "\"extra\": 1, \"dropout\""), "c",
               warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("extra"), std::string::npos);
}

TEST_F(CheckpointTest, ConfigErrorsAreShortAndPrintable) {
  const std::string good = toto1_config_json(base_config());
  const std::string flood = std::string(900'000, 'x') + "\\u001b[31m\\u009b";
  std::vector<std::string> warnings;
  for (const char* name : {"<class 'model.scaler.CausalPatchStdMeanScaler'>",
                           "<class 'model.distribution.MixtureOfStudentTsOutput'>"}) {
    const std::string sentence =
        error_of([&] { parse_config(replaced(good, name, flood), "the config", warnings); });
    EXPECT_NE(sentence.find("xxx\"... (9000"), std::string::npos) << sentence.substr(0, 500);
    EXPECT_LT(sentence.size(), 500u);
  }
  const std::string sentence = error_of([&] {
    parse_config(replaced(good, "\"patch_size\": 64", "\"patch_size\": \"\\u001b[31m\\u009b\""),
                 "the config", warnings);
  });
  EXPECT_NE(sentence.find("\\u001b[31m\\u009b"), std::string::npos) << sentence;
  std::string many = "\"\\u009b\": 1, ";
  for (int i = 0; i < 1000; ++i) many += "\"k" + std::to_string(i) + "\": 1, ";
  parse_config(replaced(good, "\"dropout\"", many + "\"dropout\""), "c", warnings);
  ASSERT_EQ(warnings.size(), 21u);
  EXPECT_EQ(warnings.front(), "c: unknown key \"\\u009b\" is ignored");
  EXPECT_EQ(warnings.back(), "c: 981 more unknown keys are ignored");
}

TEST_F(CheckpointTest, MakeModelReplacesAModelAtomically) {
  const std::string path = made_model(folder_);
  const std::string config = text_of(path + "/config.json");
  const std::string weights = text_of(path + "/model.safetensors");
  Toto1Config other = small_config();
  other.embed_dim = 64;
  for (const int stop : {0, 1, 20}) {
    int asked = 0;
    ErrorCode code = ErrorCode::internal;
    error_of(
        [&] {
          make_model(other, 2, io::TensorType::f32, path,
                     {.cancelled = [&] { return asked++ == stop; }});
        },
        &code);
    EXPECT_EQ(code, ErrorCode::cancelled) << stop;
    EXPECT_EQ(text_of(path + "/config.json"), config);
    EXPECT_EQ(text_of(path + "/model.safetensors"), weights);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path), {}), 2) << "nothing else";
  }
  std::uint64_t last = 0;
  make_model(other, 2, io::TensorType::f32, path, {.progress = [&](auto done, auto total) {
               EXPECT_GT(done, last);
               EXPECT_EQ(total, static_cast<std::uint64_t>(other.num_parameters(false)));
               last = done;
             }});
  EXPECT_EQ(last, static_cast<std::uint64_t>(other.num_parameters(false)));
  EXPECT_EQ(Engine::load(path).model().shape[1].value, 64);
}

TEST_F(CheckpointTest, AbsentKeysHaveTheReferencesDefaults) {
  std::vector<std::string> warnings;
  const Toto1Config config = parse_config(
      R"({"patch_size": 8, "stride": 8, "embed_dim": 8, "num_layers": 2, "num_heads": 2, "mlp_hidden_dim": 8,
          "dropout": 0.1, "spacewise_every_n_layers": 2, "scaler_cls": "<class 'model.scaler.StdMeanScaler'>",
          "output_distribution_classes": ["<class 'model.distribution.StudentTOutput'>"]})",
      "c", warnings);
  EXPECT_TRUE(config.spacewise_first);
  EXPECT_TRUE(config.stabilize_with_global);
  EXPECT_EQ(config.scale_factor_exponent, 10.0);
}

TEST_F(CheckpointTest, RefusesFoldersThatAreNotModels) {
  EXPECT_NE(refusal(folder_ / "nowhere").find("nowhere"), std::string::npos);
  EXPECT_EQ(code_, ErrorCode::not_found);
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_NE(refusal(folder_ / "empty").find("config.json"), std::string::npos);
  EXPECT_EQ(code_, ErrorCode::not_found);
  write_text(folder_ / "no-weights/config.json", text_of(model_ + "/config.json"));
  EXPECT_NE(refusal(folder_ / "no-weights").find("model.safetensors"), std::string::npos);
  EXPECT_EQ(code_, ErrorCode::not_found);
}

TEST_F(CheckpointTest, RefusesWrongTensors) {
  const std::string other = folder_ / "edited";
  const auto refused = [&](const std::function<void(std::vector<Tensor>&)>& edit) {
    const std::string sentence = refusal(edited_model(model_, other, edit));
    EXPECT_EQ(code_, ErrorCode::corrupt_file) << sentence;
    return sentence;
  };
  EXPECT_NE(refused([](auto& tensors) {
              tensors.pop_back();
            }).find("output_distribution.mixture_weights.bias"),
            std::string::npos);
  EXPECT_NE(refused([](auto& tensors) {
              tensors[0].shape = {tensors[0].shape[1], tensors[0].shape[0]};
            }).find("patch_embed.projection.weight has shape [8, 32]"),
            std::string::npos);
  EXPECT_NE(refused([](auto& tensors) { tensors[3].data[7] = NAN; }).find(".attention.wQKV.weight"),
            std::string::npos);
  EXPECT_NE(refused([](auto& tensors) { tensors[2].data[0] = INFINITY; }).find("norm1.scale"),
            std::string::npos);
  EXPECT_NE(refused([](auto& tensors) {
              tensors.push_back(tensors[2]);
              tensors.back().name = tensors[2].name.substr(6);
            }).find("duplicate tensor"),
            std::string::npos);
  EXPECT_NE(refused([](auto& tensors) {
              tensors.push_back({"model.target_variate_label", {32}, std::vector<float>(32, 1)});
            }).find("exogenous_variate_label"),
            std::string::npos);
}

TEST_F(CheckpointTest, UnknownTensorsAreNamedInAWarning) {
  const std::string other = edited_model(model_, folder_ / "extra", [](auto& tensors) {
    tensors.push_back({"model.transformer.rotary_emb.freqs", {4}, {1, 2, 3, 4}});
    tensors.push_back({"ema.decay", {1}, {0.5f}});
  });
  const Engine engine = Engine::load(other);
  ASSERT_EQ(engine.model().warnings.size(),
            1u);  // none about the frequencies, which are recomputed
  EXPECT_NE(engine.model().warnings[0].find("ema.decay"), std::string::npos);
}

TEST_F(CheckpointTest, BothNamingsAreTheSameModel) {
  const std::string other = edited_model(model_, folder_ / "renamed", [](auto& tensors) {
    for (Tensor& tensor : tensors) {
      tensor.name = tensor.name.substr(6);
      for (const auto& [from, to] : {std::pair<std::string, std::string>{".mlp.0.", ".mlp.0.w12."},
                                     {".mlp.2.", ".mlp.0.w3."}}) {
        if (tensor.name.find(from) != std::string::npos)
          tensor.name = replaced(tensor.name, from, to);
      }
    }
  });
  EXPECT_EQ(Engine::load(other).forecast(walk(1, 50)).mean,
            Engine::load(model_).forecast(walk(1, 50)).mean);
}

TEST_F(CheckpointTest, HalfPrecisionFilesLoad) {
  const std::vector<float> expected = Engine::load(model_).forecast(walk(1, 50)).mean;
  for (const io::TensorType type : {io::TensorType::f16, io::TensorType::bf16}) {
    const std::string other = folder_ / std::string(io::name_of(type));
    make_model(small_config(), 1, type, other);
    const std::vector<float> result = Engine::load(other).forecast(walk(1, 50)).mean;
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1.0);
    EXPECT_NE(result, expected);
  }
}

TEST_F(CheckpointTest, MadeModelsAreReproducible) {
  const std::string again = folder_ / "again";
  make_model(small_config(), 1, io::TensorType::f32, again);
  EXPECT_EQ(text_of(again + "/model.safetensors"), text_of(model_ + "/model.safetensors"));
  make_model(small_config(), 2, io::TensorType::f32, again);
  EXPECT_NE(text_of(again + "/model.safetensors"), text_of(model_ + "/model.safetensors"));
}

// The frequencies are float32 buffers in the reference: both implementations round alike.
TEST_F(CheckpointTest, RotaryTurnsAreThoseOfTheReference) {
  for (const int head_dim : {2, 8, 10, 16, 64, 128}) {
    std::vector<float> factors(4 * head_dim);
    const Rotary rotary({.dims = head_dim,
                         .query_factor = 1 / std::sqrt(double(head_dim)),
                         .float32_tables = true});
    for (const int position : {0, 1, 7, 300}) {
      rotary.factors(position, position, factors.data());
      for (int d = 0; d < head_dim; ++d) {
        const float exponent = static_cast<float>(d / 2 * 2) / static_cast<float>(head_dim);
        const float frequency =
            1.0f / static_cast<float>(std::pow(10000.0, static_cast<double>(exponent)));
        const int half = head_dim / 2;
        const float scale =
            (static_cast<float>(d % half * 2) + static_cast<float>(0.4 * head_dim)) /
            static_cast<float>(1.4 * head_dim);
        const double power = std::pow(static_cast<double>(scale), position / 512.0);
        const double angle = position * static_cast<double>(frequency);
        EXPECT_NEAR(factors[d], std::cos(angle) * power / std::sqrt(head_dim), 1e-7);
        EXPECT_NEAR(factors[head_dim + d],
                    (d % 2 == 0 ? -1 : 1) * std::sin(angle) * power / std::sqrt(head_dim), 1e-7);
        EXPECT_NEAR(factors[2 * head_dim + d], std::cos(angle) / power, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace toto
