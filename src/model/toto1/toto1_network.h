// The optimised Toto 1.0 network: folded and packed weights, the static cache, ragged batches
// without padding. The caller owns weights, cache and workspace.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/memory.h"
#include "base/threads.h"
#include "model/architecture.h"
#include "model/kv_cache.h"
#include "model/layers.h"
#include "model/rotary.h"
#include "model/schedules.h"
#include "model/toto1/toto1_weights.h"

namespace toto {

class Toto1Network final : public Network {
 public:
  enum Constant { kTargetLabel, kExogenousLabel };

  // `weights` were packed for `config` and `type` and outlive this.
  Toto1Network(const Toto1Config& config, const ModelShape& shape, DType type,
               const Toto1Weights& weights, const Kernels& kernels, ThreadPool& pool);

  ScalerState read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                           const ContextReading& reading, double* loc,
                           double* scale) const noexcept override;
  void read_patch(ScalerState& state, const float* values, float* row, double* loc,
                  double* scale) const noexcept override;
  int leading_constant(bool exogenous) const noexcept override {
    return exogenous ? kExogenousLabel : kTargetLabel;
  }
  void position_factors(int position, int last, int first_last, float* dst) const noexcept override;
  Workspace take_workspace(Arena& arena, int max_rows, int max_outputs,
                           int max_positions) const override;
  // A row of heads is [step][parameter][component]; step() adds the head's bias.
  void forward(const Pass& pass, Workspace& workspace) const noexcept override;
  StepDistribution step(const float* head, int step, double loc, double scale, ForecastRange range,
                        std::span<double> memory) const noexcept override;
  std::size_t step_doubles() const noexcept override;
  void trace(int num_variates, int outputs, const Workspace& workspace, const double* loc,
             const double* scale, Trace& trace) const override;

  std::span<const Product> products() const noexcept override { return kProducts; }
  int num_layers() const noexcept override { return config_.num_layers; }
  void multiply(Product product, int layer, int rows, const Workspace& workspace,
                const Schedule& schedule) const noexcept override {
    multiply_panels(product, layer, rows, workspace, schedule, -1);
  }
  void use(const Schedules& schedules) noexcept override { schedules_ = &schedules; }
  std::string schedule_key() const override;
  std::string schedule_name() const override;

 private:
  std::size_t head_stride() const { return weights_.head.linear.padded_out(); }
  std::size_t gate_stride() const {
    return row_stride(round_up(config_.mlp_hidden_dim, kPanel / 2));
  }
  Schedule schedule_of(Product product, int rows) const noexcept {
    return schedules_ != nullptr ? schedules_->find(product, rows) : Schedule{};
  }
  // Computes only the first `num_panels` panels; all if negative.
  void multiply_panels(Product product, int layer, int rows, const Workspace& workspace,
                       const Schedule& schedule, int num_panels) const noexcept;
  void embed(const Pass& pass, Workspace& workspace) const noexcept;
  void normalise(const WeightArray<float>& weight, int rows, Workspace& workspace) const noexcept;
  void append_keys_and_values(const Pass& pass, int time_layer,
                              Workspace& workspace) const noexcept;
  void attend_in_time(const Pass& pass, int time_layer, bool outputs_only,
                      Workspace& workspace) const noexcept;
  void attend_in_space(std::span<const SpaceGroup> groups, Workspace& workspace) const noexcept;
  void keep_outputs(const Pass& pass, Workspace& workspace) const noexcept;

  Toto1Config config_;
  DType type_ = DType::f32;
  const Kernels& kernels_;
  ThreadPool& pool_;
  Rotary rotary_;
  std::size_t embed_stride_ = 0;
  const Toto1Weights& weights_;
  int last_time_layer_ = -1;
  const Schedules* schedules_ = nullptr;
};

}  // namespace toto
