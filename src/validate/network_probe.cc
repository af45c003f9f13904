#include "validate/network_probe.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "validate/golden.h"
#include "validate/mode_checks.h"

namespace toto::validate {
namespace {

// The exact forecast of the first patch is the network's own mean, rounded to float32.
std::string detached(const NetworkProbe& probe) {
  const std::vector<float>& mean = probe.forecast.mean;
  const std::vector<double> forecast(mean.begin(), mean.end());
  const std::span<const double> path = path_of(probe.first);
  if (holds(deviation(forecast, path).mean, kRoundingNoise * mean_size(path))) return {};
  return "the forecast is not the network's mean";
}

// The lowest possible values: df is 2 plus a positive number, scales are positive.
struct Lowest {
  double value;
  bool allowed;
};
Lowest lowest_of(std::string_view name) {
  if (name == "df") return {2, true};
  if (name == "scale" || name.ends_with("_scale")) return {0, false};
  return {-std::numeric_limits<double>::infinity(), true};
}

}  // namespace

std::vector<std::string_view> output_names(const Trace& trace) {
  std::vector<std::string_view> names;
  names.reserve(trace.arrays.size());
  for (const TraceArray& array : trace.arrays) names.push_back(array.name);
  return names;
}

std::span<const double> path_of(const Trace& trace) {
  const std::span<const double> mean = output_of(trace, "mean");
  return mean.empty() ? output_of(trace, "median") : mean;
}

std::string impossible(const Trace& trace) {
  if (trace.arrays.empty()) return "the trace is empty";
  for (const TraceArray& array : trace.arrays) {
    const Lowest lowest = lowest_of(array.name);
    if (array.values.empty()) return fmt::format("{} is empty", array.name);
    for (const double value : array.values) {
      if (!std::isfinite(value)) return fmt::format("{} holds {}", array.name, value);
      if (lowest.allowed ? value < lowest.value : value <= lowest.value) {
        return fmt::format("{} is {}, expected {} {}", array.name, value,
                           lowest.allowed ? "at least" : "more than", lowest.value);
      }
    }
  }
  return {};
}

std::string same_answer(const Trace& a, const Trace& b) {
  for (const TraceArray& array : a.arrays) {
    if (!array.distinctive) continue;
    if (!(deviation(output_of(b, array.name), array.values).mean >
          kRoundingNoise * mean_size(array.values))) {
      return fmt::format(
          "{} is the same for two different series: it does not come from the network", array.name);
    }
  }
  return {};
}

NetworkProbe probe_network(Runner& runner, const Series& series) {
  const int patch = runner.model().facts.patch;
  const auto length = static_cast<int>(series.length());
  const Series other = make_series("another series", 1, length, 0);
  NetworkProbe probe{.first = runner.trace(series, {.horizon = patch}),
                     .second = runner.trace(other, {.horizon = patch})};
  const ForecastOptions exact{.horizon = patch,
                              .quantiles = {},
                              .max_context = length,
                              .decode = Decode::mean,
                              .scale = 1};  // as the trace
  const std::vector<Forecast> forecasts = runner.forecast(std::span(&series, 1), exact);
  if (!forecasts.empty()) probe.forecast = forecasts.front();
  return probe;
}

CheckResult judge_probe(std::string name, const NetworkProbe& ours, const NetworkProbe& reference,
                        DType dtype) {
  for (const NetworkProbe* probe : {&reference, &ours}) {
    const std::string whose = probe == &reference && &reference != &ours ? "reference: " : "";
    for (const std::string& wrong : {impossible(probe->first), impossible(probe->second),
                                     same_answer(probe->first, probe->second), detached(*probe)}) {
      if (!wrong.empty()) return failed_check(std::move(name), whose + wrong);
    }
  }
  if (output_names(ours.first) != output_names(reference.first)) {
    return failed_check(std::move(name), "the trace has other arrays than that of reference");
  }
  double worst = 0;
  std::string where = "nothing differs";
  for (const std::string_view output : output_names(reference.first)) {
    for (const auto& [mine, theirs] :
         {std::pair(&ours.first, &reference.first), std::pair(&ours.second, &reference.second)}) {
      const std::span<const double> expected = output_of(*theirs, output);
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
