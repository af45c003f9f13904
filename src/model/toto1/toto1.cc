#include "model/toto1/toto1.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "model/checkpoint.h"
#include "model/joined_mixture.h"
#include "model/toto1/toto1_config.h"
#include "model/toto1/toto1_network.h"
#include "model/toto1/toto1_oracle.h"
#include "model/toto1/toto1_scaler.h"
#include "model/toto1/toto1_weights.h"

namespace toto {
namespace {

constexpr std::string_view kTargetLabel = "target_variate_label";
constexpr std::string_view kExogenousLabel = "exogenous_variate_label";

// leading_rows depends on the checkpoint's labels and is set in network().
ModelShape shape_of(const Toto1Config& config) {
  ModelShape shape{.patch = config.patch_size,
                   .input_width = config.patch_size,
                   .num_heads = config.num_heads,
                   .head_dim = config.head_dim(),
                   .position_floats = 4 * config.head_dim(),
                   .num_components = config.num_components};
  for (int i = 0; i < config.num_layers; ++i) {
    shape.num_time_layers += config.is_spacewise(i) ? 0 : 1;
  }
  return shape;
}

// One pass gives one patch ahead; everything beyond it is sampled.
ModelFacts facts_of(const Toto1Config& config) {
  return {.architecture = "toto1",
          .patch = config.patch_size,
          .block = config.patch_size,
          .can_sample = true,
          .minimum_scale = minimum_scale(config),
          .max_patches = Rotary::kMaxPositions,
          .step_bytes = sizeof(double) * StoredMixture::num_doubles(config.num_components),
          .cache_bytes_per_patch =
              KvLayout(shape_of(config)).floats(kKeyPanel) / kKeyPanel * sizeof(float)};
}

// Weights like torch.nn.Linear's initialisation, so that activations stay of order one.
float limit_of(std::int64_t fan_in) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
}

// The eight parts of an architecture (architecture.h). Immutable, so any thread may use it.
class Toto1Architecture final : public Architecture {
 public:
  explicit Toto1Architecture(const Toto1Config& config)
      : Architecture(facts_of(config), shape_of(config)), config_(config) {}

  DecoderKind decoder() const noexcept override { return DecoderKind::sampled_paths; }
  std::string config_json() const override { return toto1_config_json(config_); }

  std::vector<NamedNumber> sizes() const override {
    return {{"patch_size", config_.patch_size},         {"embed_dim", config_.embed_dim},
            {"num_layers", config_.num_layers},         {"num_heads", config_.num_heads},
            {"mlp_hidden_dim", config_.mlp_hidden_dim}, {"num_components", config_.num_components}};
  }

  std::vector<std::pair<std::string, std::string>> described() const override {
    return {{"patch", fmt::format("{} steps", config_.patch_size)},
            {"layers", fmt::format("{}, {} wide, {} heads, MLP {} wide", config_.num_layers,
                                   config_.embed_dim, config_.num_heads, config_.mlp_hidden_dim)},
            {"space-wise", config_.spacewise_every_n_layers < 1
                               ? "no layer"
                               : fmt::format("one layer in {}", config_.spacewise_every_n_layers)},
            {"head", counted(config_.num_components, "Student-T component") + " a step"}};
  }

  // toto.py: Toto._map_state_dict_keys, towards the names without xFormers: no "model." in front,
  // the MLP as mlp.0 and mlp.2.
  std::string canonical_name(std::string_view stored) const override {
    if (stored.ends_with("rotary_emb.freqs")) return {};
    constexpr std::string_view kPrefix = "model.";
    if (stored.starts_with(kPrefix)) stored.remove_prefix(kPrefix.size());
    std::string result(stored);
    const auto replace = [&result](std::string_view from, std::string_view to) {
      if (const std::size_t at = result.find(from); at != std::string::npos) {
        result.replace(at, from.size(), to);
      }
    };
    replace(".mlp.0.w12.", ".mlp.0.");
    replace(".mlp.0.w3.", ".mlp.2.");
    return result;
  }
  std::string stored_name(const std::string& canonical) const override {
    return "model." + canonical;
  }

  // Names and shapes as PyTorch has them, weights as [out, in]. The two labels are there together
  // or not at all.
  std::vector<TensorSpec> tensors(const HasTensor& has, const std::string& folder) const override {
    const bool target = has(kTargetLabel);
    if (target != has(kExogenousLabel)) {
      fail(ErrorCode::corrupt_file, "{}: tensor {} is missing while {} is there", folder,
           target ? kExogenousLabel : kTargetLabel, target ? kTargetLabel : kExogenousLabel);
    }
    // wQKV has rows [3][head_dim][heads]; mlp.0 holds gate and value; unembed gives one row per
    // step.
    const std::int64_t e = config_.embed_dim, h = config_.mlp_hidden_dim, p = config_.patch_size;
    const std::int64_t k = config_.num_components;
    std::vector<TensorSpec> specs;
    const auto vector = [&](std::string name, std::int64_t size) {
      specs.push_back({std::move(name), {size}, limit_of(e)});
    };
    const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
      specs.push_back({name + ".weight", {out, in}, limit_of(in)});
      vector(name + ".bias", out);
    };
    const auto norm = [&](std::string name) { specs.push_back({std::move(name), {e}}); };
    if (target) {
      vector(std::string(kTargetLabel), e);
      vector(std::string(kExogenousLabel), e);
    }
    linear("patch_embed.projection", e, p);
    for (int i = 0; i < config_.num_layers; ++i) {
      const std::string layer = fmt::format("transformer.layers.{}", i);
      norm(layer + ".norm1.scale");
      linear(layer + ".attention.wQKV", 3 * e, e);
      linear(layer + ".attention.wO", e, e);
      norm(layer + ".norm2.scale");
      linear(layer + ".mlp.0", 2 * h, e);
      linear(layer + ".mlp.2", e, h);
    }
    linear("unembed", e * p, e);
    linear("output_distribution.df", k, e);
    linear("output_distribution.loc_proj", k, e);
    linear("output_distribution.scale_proj", k, e);
    if (config_.head == Toto1Head::mixture_of_student_t) {
      linear("output_distribution.mixture_weights", k, e);
    }
    return specs;
  }

  int packing_version() const noexcept override { return kToto1PackingVersion; }

  std::unique_ptr<PackedWeights> declare(const Checkpoint& checkpoint, DType type) const override {
    return std::make_unique<Toto1Weights>(config_, checkpoint.has(kTargetLabel), type);
  }

  std::unique_ptr<PackedWeights> pack(const Checkpoint& checkpoint, DType type,
                                      const Kernels& kernels, ThreadPool& pool) const override {
    auto weights = std::make_unique<Toto1Weights>(config_, checkpoint.has(kTargetLabel), type);
    weights->pack(config_, checkpoint, kernels, pool);
    return weights;
  }

  // The network refers to `weights`, which must outlive it. Checkpoints with labels have one row
  // more in front of each context.
  std::unique_ptr<Network> network(const PackedWeights& weights, DType type, const Kernels& kernels,
                                   ThreadPool& pool) const override {
    const auto& own = static_cast<const Toto1Weights&>(weights);
    ModelShape with_labels = shape();
    with_labels.leading_rows = own.target_label.size() > 0 ? 1 : 0;
    return std::make_unique<Toto1Network>(config_, with_labels, type, own, kernels, pool);
  }

  std::unique_ptr<Oracle> oracle(const Checkpoint& checkpoint, bool in_double) const override {
    return make_toto1_oracle(config_, checkpoint, in_double);
  }

 private:
  Toto1Config config_;
};

// A config.json with both keys is one of Toto 1.0.
constexpr std::array<std::string_view, 2> kKeys = {"embed_dim", "scaler_cls"};

// Toto-Open-Base-1.0, 151,306,080 parameters, and the shape of the bundled model.
constexpr std::array<ModelPreset, 2> kPresets = {
    {{"base", R"({"patch_size": 64, "stride": 64, "embed_dim": 768, "num_layers": 12,
"num_heads": 12, "mlp_hidden_dim": 3072, "spacewise_every_n_layers": 12, "spacewise_first": false,
"scaler_cls": "<class 'model.scaler.CausalPatchStdMeanScaler'>",
"output_distribution_classes": ["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
"output_distribution_kwargs": {"k_components": 24}})"},
     {"mini", R"({"patch_size": 16, "stride": 16, "embed_dim": 128, "num_layers": 4,
"num_heads": 4, "mlp_hidden_dim": 256, "spacewise_every_n_layers": 4, "spacewise_first": false,
"scaler_cls": "<class 'model.scaler.CausalPatchStdMeanScaler'>",
"output_distribution_classes": ["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
"output_distribution_kwargs": {"k_components": 8}})"}}};

}  // namespace

const std::span<const std::string_view> kToto1Keys = kKeys;
const std::span<const ModelPreset> kToto1Presets = kPresets;

std::unique_ptr<Architecture> parse_toto1(const io::Json& config, std::string_view what,
                                          std::vector<std::string>& warnings) {
  return std::make_unique<Toto1Architecture>(parse_toto1_config(config, what, warnings));
}

}  // namespace toto
