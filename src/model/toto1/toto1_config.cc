#include "model/toto1/toto1_config.h"

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "model/config_reader.h"

namespace toto {
namespace {

using io::Json;

constexpr std::string_view kPatchScaler = "<class 'model.scaler.CausalPatchStdMeanScaler'>";
constexpr std::string_view kCausalScaler = "<class 'model.scaler.CausalStdMeanScaler'>";
constexpr std::string_view kStdMeanScaler = "<class 'model.scaler.StdMeanScaler'>";
constexpr std::string_view kMixtureHead = "<class 'model.distribution.MixtureOfStudentTsOutput'>";
constexpr std::string_view kStudentTHead = "<class 'model.distribution.StudentTOutput'>";

Toto1Scaler read_scaler(const ConfigReader& reader) {
  const std::string& name = reader.text(reader.required("scaler_cls"), "scaler_cls");
  if (name == kPatchScaler) return Toto1Scaler::causal_patch_std_mean;
  if (name == kCausalScaler) return Toto1Scaler::causal_std_mean;
  if (name == kStdMeanScaler) return Toto1Scaler::std_mean;
  fail(ErrorCode::unsupported, "{}: scaler_cls is {}, expected one of {}, {}, {}", reader.what(),
       quoted(name), kPatchScaler, kCausalScaler, kStdMeanScaler);
}

// Exactly one distribution class: a mixture with k_components, or a single Student-T.
void read_head(const ConfigReader& reader, Toto1Config& config) {
  constexpr const char* kKey = "output_distribution_classes";
  const Json& classes = reader.required(kKey);
  if (classes.kind != Json::Kind::array || classes.array.size() != 1) {
    fail(ErrorCode::unsupported, "{}: \"{}\" must be a list of exactly one class", reader.what(),
         kKey);
  }
  const std::string& name = reader.text(classes.array[0], kKey);
  if (name == kStudentTHead) {
    config.head = Toto1Head::student_t;
    config.num_components = 1;
    return;
  }
  if (name != kMixtureHead) {
    fail(ErrorCode::unsupported, "{}: output distribution is {}, expected {} or {}", reader.what(),
         quoted(name), kMixtureHead, kStudentTHead);
  }
  config.head = Toto1Head::mixture_of_student_t;
  const Json& kwargs = reader.required("output_distribution_kwargs");
  const std::string what = fmt::format("{}: output_distribution_kwargs", reader.what());
  config.num_components = ConfigReader(kwargs, what).integer("k_components", 1, 1024);
}

}  // namespace

bool Toto1Config::is_spacewise(int layer) const {
  if (spacewise_every_n_layers < 1) return false;
  const int place = layer % spacewise_every_n_layers;
  return place == (spacewise_first ? 0 : spacewise_every_n_layers - 1);
}

// Computed before anything is allocated, to refuse absurd configs.
std::int64_t Toto1Config::num_parameters(bool with_labels) const {
  const std::int64_t e = embed_dim, h = mlp_hidden_dim, p = patch_size;
  const std::int64_t layer =
      2 * e + (3 * e * e + 3 * e) + (e * e + e) + (2 * h * e + 2 * h) + (h * e + e);
  const std::int64_t outputs = std::int64_t{params_per_step()} * (e + 1);
  return (p * e + e) + num_layers * layer + (e * e * p + e * p) + outputs +
         (with_labels ? 2 * e : 0);
}

Toto1Config parse_toto1_config(const Json& root, std::string_view what,
                               std::vector<std::string>& warnings) {
  const ConfigReader reader(root, what);
  Toto1Config config;
  config.patch_size = reader.integer("patch_size", 1, kMaxDim);
  const int stride = reader.integer("stride", 1, kMaxDim);
  if (stride != config.patch_size) {
    fail(ErrorCode::unsupported,
         "{}: stride is {} but patch_size is {}; overlapping patches are not supported", what,
         stride, config.patch_size);
  }
  config.embed_dim = reader.integer("embed_dim", 2, kMaxDim);
  config.num_layers = reader.integer("num_layers", 1, kMaxLayers);
  config.num_heads = reader.integer("num_heads", 1, kMaxDim);
  config.mlp_hidden_dim = reader.integer("mlp_hidden_dim", 1, 4 * kMaxDim);
  if (config.embed_dim % config.num_heads != 0) {
    fail(ErrorCode::corrupt_file, "{}: embed_dim {} is not divisible by num_heads {}", what,
         config.embed_dim, config.num_heads);
  }
  if (config.head_dim() % 2 != 0) {
    fail(ErrorCode::unsupported, "{}: embed_dim / num_heads is {}; rotary embedding needs it even",
         what, config.head_dim());
  }
  config.spacewise_every_n_layers = reader.integer("spacewise_every_n_layers", -1, kMaxLayers);
  if (config.spacewise_every_n_layers == 0 ||
      (config.spacewise_every_n_layers > 0 &&
       config.num_layers % config.spacewise_every_n_layers != 0)) {
    fail(ErrorCode::corrupt_file,
         "{}: spacewise_every_n_layers is {}, expected -1 or a divisor of num_layers ({})", what,
         config.spacewise_every_n_layers, config.num_layers);
  }
  reader.real("dropout", 0, 0, 1);  // unused at inference, only checked
  config.spacewise_first = reader.boolean("spacewise_first", true);
  config.scaler = read_scaler(reader);
  read_head(reader, config);
  config.stabilize_with_global = reader.boolean("stabilize_with_global", true);
  config.scale_factor_exponent = reader.real("scale_factor_exponent", 10.0, -300, 300);
  reader.boolean("use_memory_efficient_attention", true);
  if (config.num_parameters(true) > kMaxParameters) {
    fail(ErrorCode::unsupported, "{}: the model would have {} parameters; at most {} are supported",
         what, config.num_parameters(true), kMaxParameters);
  }

  constexpr std::array<std::string_view, 16> kKnown = {"patch_size",
                                                       "stride",
                                                       "embed_dim",
                                                       "num_layers",
                                                       "num_heads",
                                                       "mlp_hidden_dim",
                                                       "dropout",
                                                       "spacewise_every_n_layers",
                                                       "spacewise_first",
                                                       "scaler_cls",
                                                       "output_distribution_classes",
                                                       "output_distribution_kwargs",
                                                       "use_memory_efficient_attention",
                                                       "stabilize_with_global",
                                                       "scale_factor_exponent",
                                                       "pre_xformers_checkpoint"};
  reader.warn_of_unknown(kKnown, warnings);
  return config;
}

std::string toto1_config_json(const Toto1Config& config) {
  io::JsonWriter writer;
  writer.begin_object()
      .field("patch_size", config.patch_size)
      .field("stride", config.patch_size)
      .field("embed_dim", config.embed_dim)
      .field("num_layers", config.num_layers)
      .field("num_heads", config.num_heads)
      .field("mlp_hidden_dim", config.mlp_hidden_dim)
      .field("dropout", 0.1)
      .field("spacewise_every_n_layers", config.spacewise_every_n_layers)
      .field("spacewise_first", config.spacewise_first);
  switch (config.scaler) {
    case Toto1Scaler::std_mean:
      writer.field("scaler_cls", kStdMeanScaler);
      break;
    case Toto1Scaler::causal_std_mean:
      writer.field("scaler_cls", kCausalScaler);
      break;
    case Toto1Scaler::causal_patch_std_mean:
      writer.field("scaler_cls", kPatchScaler);
      break;
  }
  const bool mixture = config.head == Toto1Head::mixture_of_student_t;
  writer.key("output_distribution_classes")
      .begin_array()
      .value(mixture ? kMixtureHead : kStudentTHead);
  writer.end_array();
  if (mixture) {
    writer.key("output_distribution_kwargs").begin_object();
    writer.field("k_components", config.num_components).end_object();
  }
  writer.field("stabilize_with_global", config.stabilize_with_global)
      .field("scale_factor_exponent", config.scale_factor_exponent)
      .field("use_memory_efficient_attention", true)
      .end_object();
  return writer.take();
}

}  // namespace toto
