// The plain form of the linear test architecture.
#include <algorithm>
#include <cmath>

#include "linear_patches/linear_patches.h"
#include "model/checkpoint.h"

namespace toto {
namespace {

using namespace linear_patches;

// Keeps the whole history and recomputes the statistics for every prediction.
class LinearPath final : public OraclePath {
 public:
  LinearPath(const std::vector<std::vector<float>>& tensors, int patch,
             const OracleContext& context)
      : tensors_(tensors), patch_(patch), history_(context.num_variates) {
    const std::size_t length = std::size_t(context.num_patches) * patch;
    for (std::size_t i = 0; i < context.values.size(); ++i) {
      history_[i / length].push_back(context.mask[i] != 0 ? double{context.values[i]} : NAN);
    }
  }
  std::unique_ptr<OraclePath> fork() const override { return std::make_unique<LinearPath>(*this); }
  void predict(int num_patches, ThreadPool&, const std::function<void()>&) override {
    predicted_ = num_patches;
    raw_.clear();
    loc_.clear();
    scale_.clear();
    for (const std::vector<double>& series : history_) {
      double sum = 0, squares = 0, number = 0;
      for (const double x : series) number += std::isnan(x) ? 0 : 1, sum += std::isnan(x) ? 0 : x;
      loc_.push_back(sum / std::max(number, 1.0));
      for (const double x : series) squares += std::isnan(x) ? 0 : std::pow(x - loc_.back(), 2);
      scale_.push_back(std::max(std::sqrt(squares / std::max(number - 1, 1.0)), 1e-6));
      std::vector<double> row;
      for (int i = -patch_; i < 0; ++i) {
        const double x = (series.end()[i] - loc_.back()) / scale_.back();
        row.push_back(std::isnan(x) ? 0 : x);
      }
      for (int i = -patch_; i < 0; ++i) row.push_back(std::isnan(series.end()[i]) ? 1 : 0);
      for (int p = 0; p < num_patches; ++p) {
        if (p > 0) row.assign(tensors_[3].begin(), tensors_[3].end());
        const double position = double(series.size()) / patch_ - 1 + p;
        for (std::size_t n = 0; n < tensors_[1].size(); ++n) {
          raw_.push_back(tensors_[1][n] + tensors_[2][n] * position / 100);
          for (int k = 0; k < 2 * patch_; ++k)
            raw_.back() += tensors_[0][n * 2 * patch_ + k] * row[k];
        }
      }
    }
  }
  StepDistribution step(int variate, int step, std::span<double> memory) const override {
    const double* head = &raw_[std::size_t(variate * predicted_ * patch_ + step) * kNumLevels];
    return step_of(head, loc_[variate], scale_[variate], memory);
  }
  std::size_t step_doubles() const override { return kNumLevels; }
  void append(std::span<const double> values) override {
    const std::size_t steps = values.size() / history_.size();
    for (std::size_t i = 0; i < values.size(); ++i) history_[i / steps].push_back(values[i]);
  }
  void trace(Trace& trace) const override {
    add_trace(int(history_.size()), predicted_, patch_, loc_, scale_, raw_.data(), trace);
  }

 private:
  std::vector<std::vector<float>> tensors_;  // as kNames
  int patch_, predicted_ = 0;
  std::vector<std::vector<double>> history_;  // [variate][time], NaN is missing
  std::vector<double> loc_, scale_, raw_;     // raw_: [variate][patch][step][level]
};

class LinearOracle final : public Oracle {
 public:
  LinearOracle(const Checkpoint& checkpoint, int patch) : patch_(patch) {
    for (const char* name : kNames) tensors_.push_back(checkpoint.read(name));
  }
  std::unique_ptr<OraclePath> begin(const OracleContext& context, bool) const override {
    return std::make_unique<LinearPath>(tensors_, patch_, context);
  }

 private:
  int patch_;
  std::vector<std::vector<float>> tensors_;
};

}  // namespace

std::unique_ptr<Oracle> make_linear_oracle(const Checkpoint& checkpoint, int patch) {
  return std::make_unique<LinearOracle>(checkpoint, patch);
}

}  // namespace toto
