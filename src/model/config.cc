#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "io/json.h"

namespace toto {
namespace {

using io::Json;

constexpr std::string_view kPatchScaler = "<class 'model.scaler.CausalPatchStdMeanScaler'>";
constexpr std::string_view kCausalScaler = "<class 'model.scaler.CausalStdMeanScaler'>";
constexpr std::string_view kStdMeanScaler = "<class 'model.scaler.StdMeanScaler'>";
constexpr std::string_view kMixtureHead = "<class 'model.distribution.MixtureOfStudentTsOutput'>";
constexpr std::string_view kStudentTHead = "<class 'model.distribution.StudentTOutput'>";

// Far above any real checkpoint, low enough that no product of two overflows.
constexpr int kMaxDim = 1 << 16;
constexpr int kMaxLayers = 4096;
constexpr std::int64_t kMaxParameters = 20'000'000'000;

// Typed look-ups with one sentence for everything that can be wrong.
class Reader {
 public:
  Reader(const Json& root, std::string_view what) : root_(root), what_(what) {}

  const Json& required(const char* key) const {
    const Json* value = root_.find(key);
    if (value == nullptr) {
      fail(ErrorCode::corrupt_file,
           "{}: \"{}\" is missing; is this the config.json of a Toto model?", what_, key);
    }
    return *value;
  }
  int integer(const char* key, int low, int high) const {
    const Json& value = required(key);
    if (value.kind != Json::Kind::integer || value.integer < low || value.integer > high) {
      fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected an integer from {} to {}", what_,
           key, io::described(value), low, high);
    }
    return static_cast<int>(value.integer);
  }
  bool boolean(const char* key, bool otherwise) const {
    const Json* value = root_.find(key);
    if (value == nullptr) return otherwise;
    if (value->kind != Json::Kind::boolean) {
      fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected true or false", what_, key,
           io::described(*value));
    }
    return value->boolean;
  }
  double real(const char* key, double otherwise, double low, double high) const {
    const Json* value = root_.find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !(value->real >= low && value->real <= high)) {
      fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected a number from {} to {}", what_, key,
           io::described(*value), low, high);
    }
    return value->real;
  }
  const std::string& text(const Json& value, const char* key) const {
    if (value.kind != Json::Kind::string) {
      fail(ErrorCode::corrupt_file, "{}: \"{}\" is {}, expected text", what_, key,
           io::described(value));
    }
    return value.string;
  }
  std::string_view what() const { return what_; }

 private:
  const Json& root_;
  std::string_view what_;
};

ScalerKind read_scaler(const Reader& reader) {
  const std::string& name = reader.text(reader.required("scaler_cls"), "scaler_cls");
  if (name == kPatchScaler) return ScalerKind::causal_patch_std_mean;
  if (name == kCausalScaler) return ScalerKind::causal_std_mean;
  if (name == kStdMeanScaler) return ScalerKind::std_mean;
  fail(ErrorCode::unsupported, "{}: scaler_cls is {}, expected one of {}, {}, {}", reader.what(),
       io::quoted(name), kPatchScaler, kCausalScaler, kStdMeanScaler);
}

void read_head(const Reader& reader, Config& config) {
  constexpr const char* kKey = "output_distribution_classes";
  const Json& classes = reader.required(kKey);
  if (classes.kind != Json::Kind::array || classes.array.size() != 1) {
    fail(ErrorCode::unsupported, "{}: \"{}\" must be a list of exactly one class", reader.what(),
         kKey);
  }
  const std::string& name = reader.text(classes.array[0], kKey);
  if (name == kStudentTHead) {
    config.head = HeadKind::student_t;
    config.num_components = 1;
    return;
  }
  if (name != kMixtureHead) {
    fail(ErrorCode::unsupported, "{}: output distribution is {}, expected {} or {}", reader.what(),
         io::quoted(name), kMixtureHead, kStudentTHead);
  }
  config.head = HeadKind::mixture_of_student_t;
  const Json& kwargs = reader.required("output_distribution_kwargs");
  const std::string what = fmt::format("{}: output_distribution_kwargs", reader.what());
  config.num_components = Reader(kwargs, what).integer("k_components", 1, 1024);
}

}  // namespace

bool Config::is_spacewise(int layer) const {
  if (spacewise_every_n_layers < 1) return false;
  const int place = layer % spacewise_every_n_layers;
  return place == (spacewise_first ? 0 : spacewise_every_n_layers - 1);
}

std::int64_t Config::num_parameters(bool with_labels) const {
  const std::int64_t e = embed_dim, h = mlp_hidden_dim, p = patch_size;
  const std::int64_t layer =
      2 * e + (3 * e * e + 3 * e) + (e * e + e) + (2 * h * e + 2 * h) + (h * e + e);
  const std::int64_t outputs = std::int64_t{params_per_step()} * (e + 1);
  return (p * e + e) + num_layers * layer + (e * e * p + e * p) + outputs +
         (with_labels ? 2 * e : 0);
}

Config parse_config(std::string_view text, std::string_view what,
                    std::vector<std::string>& warnings) {
  const Json root = io::parse_json(text, what);
  if (root.kind != Json::Kind::object) {
    fail(ErrorCode::corrupt_file, "{}: expected a JSON object, found {}", what,
         io::described(root));
  }
  const Reader reader(root, what);
  Config config;
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
  reader.real("dropout", 0, 0, 1);  // of no meaning at inference, but it must be sane
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
  constexpr std::size_t kMostNamed = 20;
  std::size_t unknown = 0;
  for (const Json::Member& member : root.object) {
    if (std::find(kKnown.begin(), kKnown.end(), member.first) != kKnown.end()) continue;
    if (++unknown <= kMostNamed) {
      warnings.push_back(
          fmt::format("{}: unknown key {} is ignored", what, io::quoted(member.first)));
    }
  }
  if (unknown > kMostNamed) {
    warnings.push_back(
        fmt::format("{}: {} more unknown keys are ignored", what, unknown - kMostNamed));
  }
  return config;
}

std::string config_json(const Config& config) {
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
    case ScalerKind::std_mean:
      writer.field("scaler_cls", kStdMeanScaler);
      break;
    case ScalerKind::causal_std_mean:
      writer.field("scaler_cls", kCausalScaler);
      break;
    case ScalerKind::causal_patch_std_mean:
      writer.field("scaler_cls", kPatchScaler);
      break;
  }
  const bool mixture = config.head == HeadKind::mixture_of_student_t;
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
