#include "model/toto2/toto2.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "model/checkpoint.h"
#include "model/toto2/toto2_config.h"
#include "model/toto2/toto2_network.h"
#include "model/toto2/toto2_oracle.h"
#include "model/toto2/toto2_scaler.h"
#include "model/toto2/toto2_weights.h"

namespace toto {
namespace {

// The reference's tables of positions end here.
constexpr int kMaxPatches = 8192;

ModelShape shape_of(const Toto2Config& config) {
  ModelShape shape{.patch = config.patch_size,
                   .input_width = config.input_width(),
                   .num_heads = config.num_groups,
                   .head_dim = head_dim_of(config),
                   .position_floats = 4 * config.rotary_dims(),
                   .skips_gaps = true};
  for (int i = 0; i < config.num_layers; ++i) {
    shape.num_time_layers += config.is_variate_layer(i) ? 0 : 1;
  }
  return shape;
}

ModelFacts facts_of(const Toto2Config& config) {
  return {.architecture = "toto2",
          .patch = config.patch_size,
          .block = 0,
          .levels = {kToto2Levels.begin(), kToto2Levels.end()},
          .minimum_scale = kToto2MinimumScale,
          .max_patches = kMaxPatches,
          .reads_gaps = true,
          .cache_bytes_per_patch =
              KvLayout(shape_of(config)).floats(kKeyPanel) / kKeyPanel * sizeof(float)};
}

// The eight parts of an architecture (architecture.h). Immutable, so any thread may use it.
class Toto2Architecture final : public Architecture {
 public:
  explicit Toto2Architecture(const Toto2Config& config)
      : Architecture(facts_of(config), shape_of(config)), config_(config) {}

  DecoderKind decoder() const noexcept override { return DecoderKind::median_blocks; }
  std::string config_json() const override { return toto2_config_json(config_); }

  std::vector<NamedNumber> sizes() const override {
    return {{"patch_size", config_.patch_size}, {"d_model", config_.d_model},
            {"num_layers", config_.num_layers}, {"num_heads", config_.num_heads},
            {"num_groups", config_.num_groups}, {"d_ff", config_.d_ff}};
  }

  std::vector<std::pair<std::string, std::string>> described() const override {
    int variate_layers = 0;
    for (int i = 0; i < config_.num_layers; ++i) {
      variate_layers += config_.is_variate_layer(i) ? 1 : 0;
    }
    return {{"patch", fmt::format("{} steps", config_.patch_size)},
            {"layers", fmt::format("{}, {} wide, {} heads, MLP {} wide", config_.num_layers,
                                   config_.d_model, config_.num_heads, config_.d_ff)},
            {"variate-wise", counted(variate_layers, "layer")},
            {"head", fmt::format("{} quantiles a step", kToto2NumLevels)}};
  }

  // Names and shapes as PyTorch has them, weights as [out, in]. The taus are buffers: a checkpoint
  // has all of them, or none, and they follow from the config.
  std::vector<TensorSpec> tensors(const HasTensor& has, const std::string& folder) const override {
    const std::int64_t d = config_.d_model, f = config_.d_ff, w = config_.mlp_width();
    const std::int64_t qk = config_.qk_dim;
    std::vector<TensorSpec> specs;
    // Unit scaling: weights have unit variance; biases and scales start at 0, here near it.
    const float limit = static_cast<float>(std::sqrt(3.0)), small = 0.1f;
    const auto vector = [&](std::string name, std::int64_t size) {
      specs.push_back({std::move(name), {size}, small});
    };
    const auto norm = [&](std::string name, std::int64_t size) {
      specs.push_back({std::move(name), {size}});
    };
    const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
      specs.push_back({name + ".weight", {out, in}, limit});
      if (bias) vector(name + ".bias", out);
    };
    const auto residual_mlp = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      linear(name + ".linear1", w, in, true);
      linear(name + ".linear2", out, w, true);
      linear(name + ".skip_proj", out, in, true);
    };
    const bool has_taus = have_taus(has, folder);
    residual_mlp("patch_proj", config_.input_width(), d);
    for (int i = 0; i < config_.num_layers; ++i) {
      const std::string layer = fmt::format("transformer.layers.{}", i);
      if (config_.norm_include_weight) norm(layer + ".norm1.weight", d);
      linear(layer + ".attn.in_proj", config_.qkv_rows(), d, config_.attn_bias);
      if (config_.qk_norm && config_.qk_norm_include_weight) {
        norm(layer + ".attn.q_norm.weight", qk);
        norm(layer + ".attn.k_norm.weight", qk);
      }
      if (config_.per_dim_scale) vector(layer + ".attn._pds.per_dim_scale", qk);
      linear(layer + ".attn.out_proj", d, std::int64_t{config_.v_dim} * config_.num_heads,
             config_.attn_bias);
      if (config_.norm_include_weight) norm(layer + ".norm2.weight", d);
      linear(layer + ".ffn.fc1", 2 * f, d, config_.mlp_bias);
      linear(layer + ".ffn.fc2", d, f, config_.mlp_bias);
      if (has_taus) {
        specs.push_back({layer + ".attn_tau", {}, 0, config_.attn_tau(i)});
        specs.push_back({layer + ".mlp_tau", {}, 0, config_.mlp_tau(i)});
      }
    }
    if (config_.norm_include_weight) norm("transformer.out_norm.weight", d);
    residual_mlp("output_head.param_projection.proj", d, config_.outputs());
    return specs;
  }

  bool stores(DType type) const noexcept override {
    return type != DType::f64 && type != DType::int8;
  }
  int packing_version() const noexcept override { return kToto2PackingVersion; }

  std::unique_ptr<PackedWeights> declare(const Checkpoint& /*checkpoint*/,
                                         DType type) const override {
    check_type(type);
    return std::make_unique<Toto2Weights>(config_, type);
  }

  std::unique_ptr<PackedWeights> pack(const Checkpoint& checkpoint, DType type,
                                      const Kernels& /*kernels*/, ThreadPool& pool) const override {
    check_type(type);
    auto weights = std::make_unique<Toto2Weights>(config_, type);
    weights->pack(config_, checkpoint, pool);
    return weights;
  }

  // The network refers to `weights`, which must outlive it.
  std::unique_ptr<Network> network(const PackedWeights& weights, DType /*type*/,
                                   const Kernels& kernels, ThreadPool& pool) const override {
    return std::make_unique<Toto2Network>(config_, shape(),
                                          static_cast<const Toto2Weights&>(weights), kernels, pool);
  }

  std::unique_ptr<Oracle> oracle(const Checkpoint& checkpoint, bool in_double) const override {
    return make_toto2_oracle(config_, checkpoint, in_double);
  }

 private:
  // The output passes through sinh, which amplifies the rounding of 8-bit weights.
  static void check_type(DType type) {
    if (type != DType::int8) return;
    fail(ErrorCode::invalid_argument,
         "dtype int8 is not accurate enough for Toto 2.0 (15 % of the spread at 22m); use f32, f16 "
         "or bf16");
  }

  // All taus or none. A made model has all of them.
  bool have_taus(const HasTensor& has, const std::string& folder) const {
    int found = 0;
    std::string missing;
    for (int i = 0; i < config_.num_layers; ++i) {
      for (const char* tau : {"attn_tau", "mlp_tau"}) {
        const std::string name = fmt::format("transformer.layers.{}.{}", i, tau);
        if (has(name)) {
          ++found;
        } else if (missing.empty()) {
          missing = name;
        }
      }
    }
    if (found == 0) return !has("patch_proj.linear1.weight");
    if (!missing.empty()) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} is missing while {} other taus are there",
           folder, missing, found);
    }
    return true;
  }

  Toto2Config config_;
};

// A config.json with both keys is one of Toto 2.0.
constexpr std::array<std::string_view, 2> kConfigKeys = {"d_model", "layer_group_size"};

// Datadog/Toto-2.0-4m to 2.5B: 4,144,448 to 2,454,281,792 parameters.
constexpr std::array<ModelPreset, 5> kSizes = {{
    {"toto2-4m", R"({"patch_size": 32, "d_model": 256, "d_ff": 688, "num_layers": 4,
"layer_group_size": 4, "num_variate_layers_per_group": 1, "variate_layer_first": false,
"num_heads": 4, "qk_dim": 64, "norm_eps": 1e-4, "attn_bias": true, "residual_mult": 0.75,
"residual_attn_ratio": 5.136215466577748, "qk_norm": false, "per_dim_scale": true,
"use_xpos": true})"},
    {"toto2-22m", R"({"patch_size": 32, "d_model": 512, "d_ff": 1368, "num_layers": 6,
"layer_group_size": 6, "num_variate_layers_per_group": 1, "variate_layer_first": false,
"num_heads": 8, "qk_dim": 64, "norm_eps": 1e-4, "attn_bias": true, "residual_mult": 0.75,
"residual_attn_ratio": 5.136215466577748, "qk_norm": false, "per_dim_scale": true,
"use_xpos": true})"},
    {"toto2-313m", R"({"patch_size": 32, "d_model": 1024, "d_ff": 2736, "num_layers": 24,
"layer_group_size": 24, "num_variate_layers_per_group": 1, "variate_layer_first": false,
"num_heads": 16, "qk_dim": 64, "norm_eps": 1e-4, "attn_bias": true, "residual_mult": 0.75,
"residual_attn_ratio": 5.136215466577748, "qk_norm": false, "per_dim_scale": true,
"use_xpos": true})"},
    {"toto2-1B", R"({"patch_size": 32, "d_model": 1536, "d_ff": 4096, "num_layers": 36,
"layer_group_size": 36, "num_variate_layers_per_group": 1, "variate_layer_first": false,
"num_heads": 24, "qk_dim": 64, "norm_eps": 5e-4, "attn_bias": true, "residual_mult": 0.75,
"residual_attn_ratio": 5.136215466577748, "qk_norm": false, "per_dim_scale": true,
"use_xpos": true})"},
    {"toto2-2.5B", R"({"patch_size": 32, "d_model": 2048, "d_ff": 5464, "num_layers": 48,
"layer_group_size": 48, "num_variate_layers_per_group": 1, "variate_layer_first": false,
"num_heads": 32, "qk_dim": 64, "norm_eps": 5e-4, "attn_bias": true, "residual_mult": 0.75,
"residual_attn_ratio": 5.136215466577748, "qk_norm": false, "per_dim_scale": true,
"use_xpos": true})"},
}};

}  // namespace

const std::span<const std::string_view> kToto2Keys = kConfigKeys;
const std::span<const ModelPreset> kToto2Presets = kSizes;

std::unique_ptr<Architecture> parse_toto2(const io::Json& config, std::string_view what,
                                          std::vector<std::string>& warnings) {
  return std::make_unique<Toto2Architecture>(parse_toto2_config(config, what, warnings));
}

}  // namespace toto
