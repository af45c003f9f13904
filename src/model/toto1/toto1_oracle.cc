#include "model/toto1/toto1_oracle.h"

#include <utility>
#include <vector>

#include "model/toto1/toto1_head.h"
#include "model/toto1/toto1_reference.h"
#include "model/toto1/toto1_scaler.h"

namespace toto {
namespace {

// One series and its forecast so far. Copying it forks a path.
template <typename T>
class Toto1Path final : public OraclePath {
 public:
  Toto1Path(const Toto1Reference<T>& model, const OracleContext& context, bool use_cache)
      : model_(&model),
        num_variates_(context.num_variates),
        num_exogenous_(context.num_exogenous),
        use_cache_(use_cache),
        new_patches_(context.num_patches) {
    const Toto1Config& config = model.config();
    const int patch = config.patch_size, padded = context.num_patches * patch;
    loc_.resize(std::size_t(num_variates_) * patch);
    scale_.resize(loc_.size());
    for (int v = 0; v < num_variates_; ++v) {
      const auto values = context.values.subspan(std::size_t(v) * padded, padded);
      const std::vector<T> x(values.begin(), values.end());
      const auto mask = context.mask.subspan(std::size_t(v) * padded, padded);
      scalers_.push_back(start_scaler<T>(config, x, mask));
      scaled_.emplace_back(padded);
      const auto ids =
          context.ids.subspan(std::size_t(v) * context.num_patches, context.num_patches);
      ids_.emplace_back(ids.begin(), ids.end());
      for (int t = 0; t < padded; t += patch) {
        scale_patch(config, scalers_[v], x.data() + t, mask.data() + t, scaled_[v].data() + t,
                    loc_.data() + std::size_t(v) * patch, scale_.data() + std::size_t(v) * patch);
      }
    }
  }

  std::unique_ptr<OraclePath> fork() const override { return std::make_unique<Toto1Path>(*this); }

  void predict(int /*num_patches*/, ThreadPool& pool, const std::function<void()>& check) override {
    const int patch = model_->config().patch_size;
    const int all = static_cast<int>(ids_[0].size());
    const int count = use_cache_ ? new_patches_ : all;
    std::vector<T> scaled;
    std::vector<std::int64_t> ids;
    for (int v = 0; v < num_variates_; ++v) {
      scaled.insert(scaled.end(), scaled_[v].end() - std::ptrdiff_t(count) * patch,
                    scaled_[v].end());
      ids.insert(ids.end(), ids_[v].end() - count, ids_[v].end());
    }
    raw_ = model_->forward({.num_variates = num_variates_,
                            .num_patches = count,
                            .scaled = scaled,
                            .ids = ids,
                            .num_exogenous = num_exogenous_,
                            .check = check},
                           use_cache_ ? &cache_ : nullptr, pool);
  }

  StepDistribution step(int variate, int step, std::span<double> memory) const override {
    const Toto1Config& config = model_->config();
    const std::size_t at = std::size_t(variate) * config.patch_size + step;
    return StepDistribution(toto1_step<T>(config, raw_.data() + at * config.params_per_step(),
                                          nullptr, loc_[at], scale_[at], memory));
  }

  std::size_t step_doubles() const override {
    return toto1_step_doubles(model_->config().num_components);
  }

  void append(std::span<const double> values) override {
    const Toto1Config& config = model_->config();
    const int patch = config.patch_size;
    const std::vector<T> x(values.begin(), values.end());
    for (int v = 0; v < num_variates_; ++v) {
      const std::size_t at = std::size_t(v) * patch;
      scaled_[v].resize(scaled_[v].size() + patch);
      scale_patch<T>(config, scalers_[v], x.data() + at, nullptr, &scaled_[v].back() - (patch - 1),
                     loc_.data() + at, scale_.data() + at);
      ids_[v].push_back(ids_[v].back());
    }
    new_patches_ = 1;
  }

  void trace(Trace& trace) const override {
    const Toto1Config& config = model_->config();
    toto1_trace(config, num_variates_, raw_.data(),
                std::size_t(config.patch_size) * config.params_per_step(), nullptr, loc_.data(),
                scale_.data(), trace);
  }

 private:
  const Toto1Reference<T>* model_;
  int num_variates_;
  int num_exogenous_;
  bool use_cache_;
  int new_patches_;                             // patches that are not in the cache yet
  std::vector<double> loc_, scale_;             // [variate][step], the affine transform of raw_
  std::vector<ScalerState> scalers_;            // [variate]
  std::vector<std::vector<T>> scaled_;          // [variate][time]
  std::vector<std::vector<std::int64_t>> ids_;  // [variate][patch]
  Toto1ReferenceCache<T> cache_;
  std::vector<T> raw_;  // [variate][step][parameter][component], the head's latest output
};

template <typename T>
class Toto1Oracle final : public Oracle {
 public:
  Toto1Oracle(const Toto1Config& config, const Checkpoint& checkpoint)
      : model_(config, checkpoint) {}
  std::unique_ptr<OraclePath> begin(const OracleContext& context, bool use_cache) const override {
    return std::make_unique<Toto1Path<T>>(model_, context, use_cache);
  }

 private:
  Toto1Reference<T> model_;
};

}  // namespace

std::unique_ptr<Oracle> make_toto1_oracle(const Toto1Config& config, const Checkpoint& checkpoint,
                                          bool in_double) {
  if (in_double) return std::make_unique<Toto1Oracle<double>>(config, checkpoint);
  return std::make_unique<Toto1Oracle<float>>(config, checkpoint);
}

}  // namespace toto
