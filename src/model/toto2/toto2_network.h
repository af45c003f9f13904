// The optimised Toto 2.0 network: folded and packed weights, the static cache, ragged batches
// without padding. The caller owns weights, cache and workspace.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/memory.h"
#include "base/threads.h"
#include "model/architecture.h"
#include "model/layers.h"
#include "model/rotary.h"
#include "model/toto2/toto2_config.h"
#include "model/toto2/toto2_weights.h"

namespace toto {

class Toto2Network final : public Network {
 public:
  // `weights` were packed for `config` and outlive this.
  Toto2Network(const Toto2Config& config, const ModelShape& shape, const Toto2Weights& weights,
               const Kernels& kernels, ThreadPool& pool);

  ScalerState read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                           const ContextReading& reading, double* loc,
                           double* scale) const noexcept override;
  void read_patch(ScalerState& state, const float* values, float* row, double* loc,
                  double* scale) const noexcept override;
  void read_block(ScalerState& state, std::span<const float> values, float* rows, double* loc,
                  double* scale) const noexcept override;
  void read_known(ScalerState& state, const float* values, float* row, double* loc,
                  double* scale) const noexcept override;
  void position_factors(int position, int last, int first_last, float* dst) const noexcept override;
  Workspace take_workspace(Arena& arena, int max_rows, int max_outputs,
                           int max_positions) const override;
  // A row of heads is [step][level].
  void forward(const Pass& pass, Workspace& workspace) const noexcept override;
  StepDistribution step(const float* head, int step, double loc, double scale, ForecastRange range,
                        std::span<double> memory) const noexcept override;
  std::size_t step_doubles() const noexcept override { return kToto2NumLevels; }
  void trace(int num_variates, int outputs, const Workspace& workspace, const double* loc,
             const double* scale, Trace& trace) const override;

  std::span<const Product> products() const noexcept override { return kProducts; }
  int num_layers() const noexcept override { return config_.num_layers; }
  void multiply(Product product, int layer, int rows, const Workspace& workspace,
                const Schedule& schedule) const noexcept override;
  void use(const Schedules& schedules) noexcept override { schedules_ = &schedules; }
  std::string schedule_key() const override;
  std::string schedule_name() const override;

 private:
  std::size_t qkv_stride() const { return weights_.layers[0].qkv.padded_out(); }
  std::size_t mixed_stride() const { return row_stride(round_up(attended_, kPanel)); }
  std::size_t gate_stride() const { return row_stride(round_up(config_.d_ff, kPanel / 2)); }
  // Of [hidden, input] and [hidden, stream], the inputs of both residual MLPs' last layers.
  std::size_t wide_stride() const;
  std::size_t head_stride() const { return weights_.head_out.padded_out(); }
  Schedule schedule_of(Product product, int rows) const noexcept {
    return schedules_ != nullptr ? schedules_->find(product, rows) : Schedule{};
  }
  void embed(const Pass& pass, Workspace& workspace) const noexcept;
  void normalise(double epsilon, int rows, Workspace& workspace) const noexcept;
  void normalise_heads(const Toto2Weights::PackedLayer& layer, int rows,
                       Workspace& workspace) const noexcept;
  void append_keys_and_values(const Pass& pass, int time_layer,
                              Workspace& workspace) const noexcept;
  void attend_in_time(const Pass& pass, int time_layer, bool outputs_only,
                      Workspace& workspace) const noexcept;
  void attend_across(std::span<const SpaceGroup> groups, Workspace& workspace) const noexcept;
  void keep_outputs(const Pass& pass, Workspace& workspace) const noexcept;
  void predict(int outputs, Workspace& workspace) const noexcept;

  Toto2Config config_;
  const Kernels& kernels_;
  ThreadPool& pool_;
  Rotary rotary_;
  int head_dim_ = 0;
  int attended_ = 0;  // width of attention's output: all heads
  std::size_t embed_stride_ = 0;
  const Toto2Weights& weights_;
  int last_time_layer_ = -1;
  const Schedules* schedules_ = nullptr;
};

}  // namespace toto
