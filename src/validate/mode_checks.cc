#include "validate/mode_checks.h"

#include <chrono>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "base/stopwatch.h"

namespace toto::validate {

double storage_share(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0.0025;  // rounds eight times finer than bf16
    case DType::bf16:
      return 0.02;
    case DType::int8:
      return 0.05;
    default:
      return 0;
  }
}

EngineOptions engine_for(EngineOptions engine, Mode mode) {
  engine.mode = mode;
  engine.use_kv_cache = true;
  if (mode == Mode::reference) engine.dtype = DType::f32;
  return engine;
}

void require_optimised_dtype(DType dtype) {
  if (dtype != DType::f64) return;
  fail(ErrorCode::invalid_argument,
       "dtype is f64, which only reference mode has; expected f32, f16, bf16 or int8");
}

Series make_series(std::string id, int num_variates, int length, std::uint64_t seed) {
  Series series{.id = std::move(id), .num_variates = num_variates};
  series.values.reserve(std::size_t(num_variates) * length);
  for (int v = 0; v < num_variates; ++v) {
    const auto uniform = [&](std::uint32_t step, int word) {  // in (0, 1)
      const RandomWords words = random_words({.seed = seed,
                                              .stream = stream_of(series.id),
                                              .variate = std::uint32_t(v),
                                              .step = step});
      return (words[word] + 0.5) * 0x1p-32;
    };
    const double period = 6 + 40 * uniform(0, 1);
    const double level = 20 * uniform(0, 2) - 10;
    double walk = 0;
    for (int t = 0; t < length; ++t) {
      walk += uniform(t, 3) - 0.5;
      const double season = 2 * std::sin(2 * std::numbers::pi * t / period);
      series.values.push_back(static_cast<float>(level + season + walk + 0.3 * uniform(t, 0)));
    }
  }
  return series;
}

TimedForecast forecast_window(Runner& runner, const Window& window,
                              const ForecastOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Forecast> forecasts = runner.forecast(std::span(&window.context, 1), options);
  const double milliseconds = milliseconds_since(start);
  const auto steps = static_cast<std::size_t>(options.horizon);
  if (forecasts.size() != 1 || forecasts[0].mean.size() != steps) {
    fail(ErrorCode::internal, "{}: the answer is not one forecast of {} steps", window.context.id,
         steps);
  }
  return {std::move(forecasts[0]), milliseconds};
}

}  // namespace toto::validate
