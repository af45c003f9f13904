#include "model/toto2/toto2_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "model/toto2/toto2_head.h"
#include "model/toto2/toto2_reference.h"

namespace toto {
namespace {

constexpr double kMinimumScale = 1e-6;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// One variate: everything observed so far, missing values as NaN, and the statistics of each patch.
struct PlainVariate {
  std::vector<double> values;
  std::vector<double> loc, scale;  // [patch]

  // model.py: PatchedCausalStdScaler and backfill_short_patches, over all values.
  void compute_statistics(int patch, int min_observed) {
    loc.clear();
    scale.clear();
    std::vector<double> first;
    for (const double x : values) {
      if (!std::isnan(x) && static_cast<int>(first.size()) < min_observed) first.push_back(x);
    }
    double first_mean = 0, first_squares = 0;
    for (const double x : first) first_mean += x / static_cast<double>(first.size());
    for (const double x : first) first_squares += (x - first_mean) * (x - first_mean);
    const double first_count = std::max(static_cast<double>(first.size()) - 1, 1.0);

    double count = 0, sum = 0, mean = 0, squares = 0;
    for (std::size_t t = 0; t < values.size(); ++t) {
      if (const double x = values[t]; !std::isnan(x)) {
        count += 1;
        sum += x;
        const double before = mean;
        mean = sum / count;
        squares += (x - before) * (x - mean);
      }
      if ((t + 1) % patch != 0) continue;
      const bool few = count < min_observed;
      const double deviation = few ? std::sqrt(first_squares / first_count)
                                   : std::sqrt(squares / std::max(count - 1, 1.0));
      loc.push_back(few ? first_mean : mean);
      scale.push_back(std::max(deviation, kMinimumScale));
    }
  }
};

// One series and its forecast so far. Copying it forks a path.
template <typename T>
class Toto2Path final : public OraclePath {
 public:
  Toto2Path(const Toto2Reference<T>& model, const OracleContext& context)
      : model_(&model),
        num_known_(context.known_future.empty() ? 0 : context.num_exogenous),
        context_patches_(context.num_patches),
        min_observed_(context.min_observed),
        cap_(context.cap),
        ids_(context.ids.begin(), context.ids.end()),
        future_ids_(context.future_ids.begin(), context.future_ids.end()),
        variates_(context.num_variates),
        ranges_(context.num_variates) {
    const std::size_t patch = model.config().patch_size, length = context.num_patches * patch;
    for (int v = 0; v < context.num_variates; ++v) {
      for (std::size_t t = 0; t < length; ++t) {
        const std::size_t at = v * length + t;
        variates_[v].values.push_back(context.mask[at] != 0 ? double{context.values[at]}
                                                            : kMissing);
      }
    }
    for (int k = 0; k < num_known_; ++k) {
      const std::size_t horizon = context.known_future.size() / num_known_;
      const auto from = context.known_future.begin() + std::ptrdiff_t(k * horizon);
      futures_.emplace_back(from, from + std::ptrdiff_t(horizon));
    }
  }

  std::unique_ptr<OraclePath> fork() const override { return std::make_unique<Toto2Path>(*this); }

  // The first call reads the context, later ones the previous block; each also the patches to
  // predict, whose values are missing unless they are known.
  void predict(int num_patches, ThreadPool& pool, const std::function<void()>& check) override {
    const Toto2Config& config = model_->config();
    const int patch = config.patch_size, num_variates = static_cast<int>(variates_.size());
    const bool first = cache_.length == 0;
    const int done = static_cast<int>(variates_[0].values.size()) / patch;  // patches with data
    const int begin = first ? 0 : done - block_;
    const int num_rows = done - begin + num_patches;
    std::vector<T> rows;
    std::vector<std::int64_t> ids;
    std::vector<std::uint8_t> absent;
    loc_.clear();
    scale_.clear();
    for (int v = 0; v < num_variates; ++v) {
      PlainVariate all = variates_[v];
      all.values.resize(std::size_t(done + num_patches) * patch, kMissing);
      if (is_known(v)) {  // all of the known future counts, also what comes later
        const std::vector<double>& future = futures_[v - (num_variates - num_known_)];
        const std::size_t context = std::size_t(context_patches_) * patch;
        all.values.resize(
            std::max(all.values.size(), (context + future.size() + patch - 1) / patch * patch),
            kMissing);
        std::copy(future.begin(), future.end(), all.values.begin() + std::ptrdiff_t(context));
      }
      all.compute_statistics(patch, min_observed_);
      if (first) ranges_[v] = range_of(all);
      for (int p = begin; p < done + num_patches; ++p) {
        append_row(all, p, /*fed_back=*/!first && p < done, rows);
        // Row i of a later call has the id of patch i of the context.
        const int place = p - begin;
        const bool gap =
            place < context_patches_ && ids_[std::size_t(v) * context_patches_ + place] == -1;
        ids.push_back(gap ? -1 : future_ids_[v]);
        absent.push_back(first && gap ? 1 : 0);
      }
      loc_.push_back(all.loc[done]);
      scale_.push_back(all.scale[done]);
    }
    block_ = num_patches;
    raw_ = model_->forward({.num_variates = num_variates,
                            .num_rows = num_rows,
                            .num_outputs = num_patches,
                            .rows = rows,
                            .ids = ids,
                            .absent = absent,
                            .check = check},
                           cache_, pool);
  }

  StepDistribution step(int variate, int step, std::span<double> memory) const override {
    const Toto2Config& config = model_->config();
    const std::size_t output = std::size_t(variate) * block_ + step / config.patch_size;
    return toto2_step(raw_.data() + output * config.outputs(), config.patch_size,
                      step % config.patch_size, loc_[variate], scale_[variate], ranges_[variate],
                      memory);
  }
  std::size_t step_doubles() const override { return kToto2NumLevels; }

  void append(std::span<const double> values) override {
    const std::size_t steps = values.size() / variates_.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      variates_[i / steps].values.push_back(static_cast<T>(values[i]));
    }
  }

  void trace(Trace& trace) const override {
    const int traced = static_cast<int>(variates_.size()) - num_known_;
    toto2_trace(traced, block_, model_->config().patch_size, raw_.data(),
                model_->config().outputs(), {loc_.begin(), loc_.begin() + traced},
                {scale_.begin(), scale_.begin() + traced}, trace);
  }

 private:
  bool is_known(int v) const { return v >= static_cast<int>(variates_.size()) - num_known_; }

  // [asinh of the scaled values, flags]; a block that is fed back has no flags.
  void append_row(const PlainVariate& all, int p, bool fed_back, std::vector<T>& rows) const {
    const int patch = model_->config().patch_size;
    const auto from = all.values.begin() + std::ptrdiff_t(p) * patch;
    for (auto x = from; x != from + patch; ++x) {
      const double scaled = std::isnan(*x) ? 0 : (*x - all.loc[p]) / all.scale[p];
      rows.push_back(static_cast<T>(std::asinh(scaled)));
    }
    for (auto x = from; x != from + patch; ++x) {
      rows.push_back(std::isnan(*x) && !fed_back ? T{1} : T{0});
    }
  }

  ForecastRange range_of(const PlainVariate& all) const {
    if (cap_ <= 0) return {};
    const auto end =
        all.values.begin() + std::ptrdiff_t(context_patches_) * model_->config().patch_size;
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (auto x = all.values.begin(); x != end; ++x) {
      if (std::isnan(*x)) continue;
      low = std::min(low, *x);
      high = std::max(high, *x);
    }
    if (low > high) low = high = 0;
    const double reach = cap_ * all.scale[context_patches_ - 1];
    return {low - reach, high + reach};
  }

  const Toto2Reference<T>* model_;
  int num_known_;  // the last variates
  int context_patches_;
  int min_observed_;
  double cap_;
  std::vector<std::int64_t> ids_;             // [variate][patch of the context], -1: no value
  std::vector<std::int64_t> future_ids_;      // [variate]
  std::vector<PlainVariate> variates_;        // without the known future
  std::vector<std::vector<double>> futures_;  // [known variate][step]
  std::vector<ForecastRange> ranges_;         // [variate]
  int block_ = 0;                             // patches of the latest call
  std::vector<double> loc_, scale_;           // [variate] of the latest call
  Toto2ReferenceCache<T> cache_;
  std::vector<T> raw_;  // [variate][patch][step][level]
};

template <typename T>
class Toto2Oracle final : public Oracle {
 public:
  Toto2Oracle(const Toto2Config& config, const Checkpoint& checkpoint)
      : model_(config, checkpoint) {}
  std::unique_ptr<OraclePath> begin(const OracleContext& context,
                                    bool /*use_cache*/) const override {
    return std::make_unique<Toto2Path<T>>(model_, context);
  }

 private:
  Toto2Reference<T> model_;
};

}  // namespace

std::unique_ptr<Oracle> make_toto2_oracle(const Toto2Config& config, const Checkpoint& checkpoint,
                                          bool in_double) {
  if (in_double) return std::make_unique<Toto2Oracle<double>>(config, checkpoint);
  return std::make_unique<Toto2Oracle<float>>(config, checkpoint);
}

}  // namespace toto
