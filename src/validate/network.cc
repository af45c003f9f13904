#include "validate/network.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "validate/golden.h"
#include "validate/verify_parts.h"

namespace toto::validate {
namespace {

// The exact forecast of the first patch is the network's own mean, rounded to float32.
std::string detached(const Probe& probe) {
  const std::vector<float>& mean = probe.forecast.mean;
  const std::vector<double> forecast(mean.begin(), mean.end());
  if (holds(deviation(forecast, probe.first.mean).mean,
            kRoundingNoise * mean_size(probe.first.mean))) {
    return {};
  }
  return "the forecast is not the mean of what the network says";
}

}  // namespace

std::string impossible(const Trace& trace) {
  for (const std::string_view name : kTraceOutputs) {
    for (const double value : output_of(trace, name)) {
      if (!std::isfinite(value)) return fmt::format("{} holds {}", name, value);
    }
  }
  const auto lowest = [](const std::vector<double>& values) {
    return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
  };
  if (lowest(trace.df) < 2) return fmt::format("df is {}, below 2", lowest(trace.df));
  if (lowest(trace.scale) <= 0) return fmt::format("scale is {}", lowest(trace.scale));
  if (lowest(trace.component_scale) <= 0) {
    return fmt::format("component_scale is {}", lowest(trace.component_scale));
  }
  return {};
}

std::string same_answer(const Trace& a, const Trace& b) {
  for (const std::string_view name : {"component_loc", "component_scale"}) {
    const std::span<const double> first = output_of(a, name);
    if (!(deviation(output_of(b, name), first).mean > kRoundingNoise * mean_size(first))) {
      return fmt::format(
          "{} is the same for two different series: it does not come from the network", name);
    }
  }
  return {};
}

Probe probe_network(Runner& runner, const Series& series) {
  const int patch = runner.model().patch_size;
  const auto length = static_cast<int>(series.length());
  const Series other = make_series("another series", 1, length, 0);
  Probe probe{.first = runner.trace(series, patch), .second = runner.trace(other, patch)};
  const ForecastOptions exact{
      .horizon = patch, .quantiles = {}, .max_context = length, .decode = Decode::mean};
  const std::vector<Forecast> forecasts = runner.forecast(std::span(&series, 1), exact);
  if (!forecasts.empty()) probe.forecast = forecasts.front();
  return probe;
}

Check judge_probe(std::string name, const Probe& ours, const Probe& reference, DType dtype) {
  for (const Probe* probe : {&reference, &ours}) {
    const std::string whose = probe == &reference && &reference != &ours ? "reference: " : "";
    for (const std::string& wrong : {impossible(probe->first), impossible(probe->second),
                                     same_answer(probe->first, probe->second), detached(*probe)}) {
      if (!wrong.empty()) return failed_check(std::move(name), whose + wrong);
    }
  }
  double worst = 0;
  std::string where = "nothing differs";
  for (const std::string_view output : kTraceOutputs) {
    for (const auto& [mine, theirs] :
         {std::pair(&ours.first, &reference.first), std::pair(&ours.second, &reference.second)}) {
      const std::span<const double> expected = output_of(*theirs, output);
      if (expected.empty() && output_of(*mine, output).empty()) continue;  // a single Student-T
      const double size = mean_size(expected);
      const double error = deviation(output_of(*mine, output), expected).mean;
      const double share = error == 0 ? 0 : error / size;
      if (share <= worst) continue;  // NaN is worse than anything
      worst = share;
      where = fmt::format("{} is {:.2g} of its size from reference", output, share);
      if (std::isnan(worst)) return failed_check(std::move(name), where);
    }
  }
  return measured_check(std::move(name), worst, kRoundingNoise + storage_share(dtype), where);
}

}  // namespace toto::validate
