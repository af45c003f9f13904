#include "validate/runner.h"

#include <algorithm>
#include <bit>

#include "base/process_memory.h"

namespace toto::validate {
namespace {

class EngineRunner final : public Runner {
 public:
  EngineRunner(const std::string& folder, const EngineOptions& options)
      : engine_(Engine::load(folder, options)) {}

  Trace trace(const Series& series, const ForecastOptions& options) override {
    return engine_.trace(series, options);
  }
  std::vector<Forecast> forecast(std::span<const Series> batch,
                                 const ForecastOptions& options) override {
    return engine_.forecast(batch, options);
  }
  const ModelInfo& model() const override { return engine_.model(); }
  std::string kv_cache_name() const override { return engine_.kv_cache_name(); }
  void finish_warm_up() override { engine_.finish_warm_up(); }
  std::int64_t replans() const override { return engine_.replans(); }

 private:
  Engine engine_;
};

}  // namespace

std::unique_ptr<Runner> load_runner(const std::string& folder, const EngineOptions& options) {
  return std::make_unique<EngineRunner>(folder, options);
}

std::vector<Mode> all_modes(DType dtype) {
  if (dtype == DType::f64) return {Mode::reference};
  // `reference` does not support smaller weights.
  if (dtype != DType::f32) return {Mode::standard, Mode::reduce_overhead, Mode::max_autotune};
  return {Mode::reference, Mode::standard, Mode::reduce_overhead, Mode::max_autotune};
}

EngineOptions noting_weights(EngineOptions options, std::vector<std::string>& notes) {
  options.on_plan = [&notes, next = options.on_plan](std::string_view sentence) {
    if (sentence.starts_with("weights: ")) note_once(std::string(sentence), notes);
    if (next) next(sentence);
  };
  return options;
}

void note_once(const std::string& sentence, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), sentence) == notes.end()) notes.push_back(sentence);
}

std::vector<std::uint32_t> bits_of(const Forecast& forecast) {
  std::vector<std::uint32_t> bits;
  for (const auto* values :
       {&forecast.mean, &forecast.median, &forecast.quantiles, &forecast.samples}) {
    for (const float value : *values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

std::size_t num_different(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

PeakMemory::PeakMemory() {
  release_freed_memory();
  reset_peak();
  before_ = resident_bytes();
}

std::optional<double> PeakMemory::megabytes() const {
  const std::optional<std::uint64_t> peak = peak_resident_bytes();
  if (!before_ || !peak) return std::nullopt;
  return *peak > *before_ ? static_cast<double>(*peak - *before_) / kMegabyte : 0.0;
}

std::optional<double> PeakMemory::megabytes(const ModelInfo& model) const {
  const std::optional<double> above = megabytes();
  if (!above) return std::nullopt;
  return std::max(*above, static_cast<double>(model.weight_bytes) / kMegabyte);
}

}  // namespace toto::validate
