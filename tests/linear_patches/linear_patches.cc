// Every patch is a linear function of the previous one, with quantile outputs.
//
//   row     scaled values of the patch, 0 if missing; then a flag for each, 1 = missing
//   head    [step][level] = bias + weight . row + drift * position / 100, in units of the scale
//   query   a constant row in place of a patch to predict
#include "linear_patches/linear_patches.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/checkpoint.h"
#include "model/config_reader.h"

namespace toto {
namespace {

using namespace linear_patches;

struct LinearWeights final : PackedWeights {
  explicit LinearWeights(int patch) {
    const std::size_t outputs = std::size_t(patch) * kNumLevels, width = 2 * std::size_t(patch);
    arrays = {WeightArray<float>(outputs * width), WeightArray<float>(outputs),
              WeightArray<float>(outputs), WeightArray<float>(width)};
    for (WeightArray<float>& array : arrays) add(array);
  }
  std::array<WeightArray<float>, 4> arrays;  // as kNames
};

class LinearNetwork final : public Network {
 public:
  LinearNetwork(const ModelShape& shape, const LinearWeights& weights)
      : Network(shape), patch_(shape.patch), weights_(weights.arrays) {}

  ScalerState read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                           const ContextReading&, double* loc,
                           double* scale) const noexcept override {
    ScalerState state;
    for (std::size_t t = 0; t < mask.size(); t += patch_) {
      scale_values(state, &rows[t], &mask[t], &rows[t], loc, scale);
    }
    for (int t = int(mask.size()) - patch_; t >= 0; t -= patch_) {  // rows are wider: from the back
      std::copy_n(&rows[t], patch_, &rows[2 * t]);
      for (int i = 0; i < patch_; ++i) rows[2 * t + patch_ + i] = mask[t + i] != 0 ? 0.0f : 1.0f;
    }
    return state;
  }
  void read_patch(ScalerState& state, const float* values, float* row, double* loc,
                  double* scale) const noexcept override {
    scale_values(state, values, nullptr, row, loc, scale);
    std::fill_n(row + patch_, patch_, 0.0f);
  }
  void position_factors(int position, int, int, float* dst) const noexcept override {
    *dst = static_cast<float>(position) / 100;
  }
  Workspace take_workspace(Arena& arena, int, int max_outputs, int) const override {
    Workspace workspace;
    workspace.head_stride = std::size_t(patch_) * kNumLevels;
    workspace.heads = arena.take<float>(max_outputs * workspace.head_stride);
    return workspace;
  }
  void forward(const Pass& pass, Workspace& workspace) const noexcept override {
    const auto& [weight, bias, drift, query] = weights_;
    float* head = workspace.heads;
    for (const RowRun& run : pass.runs) {
      for (int i = run.num_rows - run.num_outputs; i < run.num_rows; ++i) {
        const float* row = pass.inputs + std::size_t(run.first_row + i) * 2 * patch_;
        for (const ConstantRow& constant : pass.constants) {
          if (constant.row == run.first_row + i) row = query.data();
        }
        for (std::size_t n = 0; n < workspace.head_stride; ++n) {
          double sum = bias.data()[n] + double(drift.data()[n]) * run.positions[i];
          for (int k = 0; k < 2 * patch_; ++k)
            sum += double(weight.data()[2 * patch_ * n + k]) * row[k];
          *head++ = static_cast<float>(sum);
        }
      }
    }
  }
  StepDistribution step(const float* head, int step, double loc, double scale, ForecastRange,
                        std::span<double> memory) const noexcept override {
    return step_of(head + step * kNumLevels, loc, scale, memory);
  }
  std::size_t step_doubles() const noexcept override { return kNumLevels; }
  void trace(int variates, int outputs, const Workspace& workspace, const double* loc,
             const double* scale, Trace& trace) const override {
    std::vector<double> locs, scales;
    for (int v = 0; v < variates; ++v) {
      locs.push_back(loc[v * patch_]);
      scales.push_back(scale[v * patch_]);
    }
    add_trace(variates, outputs, patch_, locs, scales, workspace.heads, trace);
  }

 private:
  // Mean and deviation of everything so far, Welford's update.
  void scale_values(ScalerState& state, const float* values, const std::uint8_t* mask, float* dst,
                    double* loc, double* scale) const noexcept {
    const auto counts = [mask](int i) { return mask == nullptr || mask[i] != 0; };
    for (int i = 0; i < patch_; ++i) {
      if (!counts(i)) continue;
      const double before = state.mean;
      state.mean += (values[i] - before) / ++state.weight;
      state.m2 += (values[i] - before) * (values[i] - state.mean);
    }
    std::fill_n(loc, patch_, state.mean);
    std::fill_n(scale, patch_,
                std::max(std::sqrt(state.m2 / std::max(state.weight - 1, 1.0)), 1e-6));
    for (int i = 0; i < patch_; ++i) {
      dst[i] = counts(i) ? static_cast<float>((values[i] - *loc) / *scale) : 0.0f;
    }
  }
  int patch_;
  const std::array<WeightArray<float>, 4>& weights_;
};

class LinearArchitecture final : public Architecture {
 public:
  LinearArchitecture(int patch, int block)
      : Architecture({.architecture = "linear_patches",
                      .patch = patch,
                      .block = block * patch,
                      .levels = {kLevels.begin(), kLevels.end()},
                      .minimum_scale = 1e-6,
                      .max_patches = 1 << 20},
                     {.patch = patch, .input_width = 2 * patch, .position_floats = 1}) {}
  DecoderKind decoder() const noexcept override { return DecoderKind::median_blocks; }
  std::string config_json() const override {
    return fmt::format(R"({{"linear_patches": 1, "patch_size": {}, "block_patches": {}}})",
                       facts().patch, facts().block / facts().patch);
  }
  std::vector<NamedNumber> sizes() const override {
    return {{"patch_size", facts().patch}, {"block_patches", facts().block / facts().patch}};
  }
  std::vector<std::pair<std::string, std::string>> described() const override {
    return {{"patch", fmt::format("{} steps", facts().patch)}, {"head", "5 quantiles a step"}};
  }
  std::vector<TensorSpec> tensors(const HasTensor&, const std::string&) const override {
    const std::int64_t outputs = facts().patch * kNumLevels, width = 2 * facts().patch;
    return {{"weight", {outputs, width}, 0.3f},
            {"bias", {outputs}, 1},
            {"drift", {outputs}, 1},
            {"query", {width}, 1}};
  }
  int packing_version() const noexcept override { return 1; }
  std::unique_ptr<PackedWeights> declare(const Checkpoint&, DType) const override {
    return std::make_unique<LinearWeights>(facts().patch);
  }
  std::unique_ptr<PackedWeights> pack(const Checkpoint& checkpoint, DType, const Kernels&,
                                      ThreadPool&) const override {
    auto weights = std::make_unique<LinearWeights>(facts().patch);
    for (std::size_t i = 0; i < weights->arrays.size(); ++i) {
      std::ranges::copy(checkpoint.read(kNames[i]), weights->arrays[i].allocate());
    }
    return weights;
  }
  std::unique_ptr<Network> network(const PackedWeights& weights, DType, const Kernels&,
                                   ThreadPool&) const override {
    return std::make_unique<LinearNetwork>(shape(), static_cast<const LinearWeights&>(weights));
  }
  std::unique_ptr<Oracle> oracle(const Checkpoint& checkpoint, bool) const override {
    return make_linear_oracle(checkpoint, facts().patch);
  }
};

}  // namespace

std::unique_ptr<Architecture> parse_linear_patches(const io::Json& config, std::string_view what,
                                                   std::vector<std::string>& warnings) {
  const ConfigReader reader(config, what);
  constexpr std::array<std::string_view, 3> kKnown = {"linear_patches", "patch_size",
                                                      "block_patches"};
  reader.warn_of_unknown(kKnown, warnings);
  return std::make_unique<LinearArchitecture>(reader.integer("patch_size", 1, 1024),
                                              reader.integer("block_patches", 1, 1024));
}

}  // namespace toto
