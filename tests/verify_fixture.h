// Engines with a single fault, and lookups in the report of verify.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "trace_values.h"
#include "validate/verification.h"

namespace toto::validate {

// A fault of an engine: each hook gets the engine's options and changes its answer.
struct Fault {
  std::function<void(const EngineOptions&)> on_load = {};
  std::function<void(const EngineOptions&, const Series&, Trace&)> on_trace = {};
  std::function<void(const EngineOptions&, std::span<const Series>, std::vector<Forecast>&)>
      on_forecast = {};
  std::function<std::string(const EngineOptions&, std::string)> cache_name = {};
  // Changes a request before the engine gets it.
  std::function<void(const EngineOptions&, ForecastOptions&)> on_request = {};
  // Replans after the warm-up.
  std::function<std::int64_t(const EngineOptions&)> on_warm_up = {};
  std::int64_t replans = 0;
};

class FaultyRunner final : public Runner {
 public:
  FaultyRunner(std::unique_ptr<Runner> inner, const EngineOptions& options, const Fault& fault)
      : inner_(std::move(inner)), options_(options), fault_(fault) {}

  Trace trace(const Series& series, const ForecastOptions& options) override {
    Trace trace = inner_->trace(series, options);
    if (fault_.on_trace) fault_.on_trace(options_, series, trace);
    return trace;
  }
  std::vector<Forecast> forecast(std::span<const Series> batch,
                                 const ForecastOptions& options) override {
    ForecastOptions request = options;
    if (fault_.on_request) fault_.on_request(options_, request);
    std::vector<Forecast> forecasts = inner_->forecast(batch, request);
    if (fault_.on_forecast) fault_.on_forecast(options_, batch, forecasts);
    return forecasts;
  }
  const ModelInfo& model() const override { return inner_->model(); }
  std::string kv_cache_name() const override {
    const std::string name = inner_->kv_cache_name();
    return fault_.cache_name ? fault_.cache_name(options_, name) : name;
  }
  void finish_warm_up() override {
    inner_->finish_warm_up();
    warm_ = true;
  }
  std::int64_t replans() const override {
    // All at the second query after warm-up: later ones are counted from the first.
    const std::int64_t late =
        warm_ && ++asked_ > 1 && fault_.on_warm_up ? fault_.on_warm_up(options_) : 0;
    return inner_->replans() + fault_.replans + late;
  }

 private:
  std::unique_ptr<Runner> inner_;
  EngineOptions options_;
  Fault fault_;
  bool warm_ = false;
  mutable int asked_ = 0;
};

// Loads real engines and puts the fault into each.
inline Loader faulty(Fault fault) {
  return [fault = std::move(fault)](const std::string& folder, const EngineOptions& options) {
    std::unique_ptr<Runner> inner = load_runner(folder, options);
    if (fault.on_load) fault.on_load(options);
    return std::make_unique<FaultyRunner>(std::move(inner), options, fault);
  };
}

// Makes the forecasts of one mode and one horizon take far longer than those of `reference` did on
// average, however busy the machine is: a median is at most twice a mean.
inline Fault slowed(Mode mode, int horizon) {
  using Clock = std::chrono::steady_clock;
  struct Seen {
    Clock::time_point start = {};
    Clock::duration total = {};
    int count = 0;
  };
  const auto seen = std::make_shared<Seen>();
  return {.on_forecast =
              [=](const EngineOptions& options, std::span<const Series>,
                  std::vector<Forecast>& forecasts) {
                if (forecasts[0].horizon != horizon) return;
                if (options.mode == Mode::reference) {
                  seen->total += Clock::now() - seen->start;
                  ++seen->count;
                } else if (options.mode == mode) {
                  std::this_thread::sleep_for(3 * seen->total / seen->count +
                                              std::chrono::milliseconds(20));
                }
              },
          .on_request =
              [=](const EngineOptions& options, ForecastOptions& request) {
                if (options.mode == Mode::reference && request.horizon == horizon) {
                  seen->start = Clock::now();
                }
              }};
}

// Calls change(values) for every array of a trace that the network computes.
template <typename Change>
void change_network(Trace& trace, const Change& change) {
  for (TraceArray& array : trace.arrays) {
    if (array.name != "loc" && array.name != "scale") change(array.values);
  }
}

// Calls change(value) for every number of the forecasts.
template <typename Change>
void change_numbers(std::vector<Forecast>& forecasts, const Change& change) {
  for (Forecast& forecast : forecasts) {
    for (auto* values : {&forecast.mean, &forecast.median, &forecast.point, &forecast.quantiles,
                         &forecast.samples}) {
      for (float& value : *values) change(value);
    }
  }
}

// Zeros instead of everything the network computes, in every mode.
inline Fault zeroed() {
  return {.on_trace =
              [](const EngineOptions&, const Series&, Trace& trace) {
                change_network(trace, [](auto& all) { std::fill(all.begin(), all.end(), 0.0); });
              },
          .on_forecast =
              [](const EngineOptions&, std::span<const Series>, std::vector<Forecast>& all) {
                change_numbers(all, [](float& value) { value = 0; });
              }};
}

inline std::vector<std::string> failed_names(const VerifyReport& report) {
  std::vector<std::string> names;
  for (const CheckResult& check : report.checks) {
    if (!check.passed) names.push_back(check.name);
  }
  return names;
}

inline const CheckResult& find_check(const VerifyReport& report, std::string_view name) {
  for (const CheckResult& check : report.checks) {
    if (check.name == name) return check;
  }
  throw std::runtime_error("no check " + std::string(name));
}

}  // namespace toto::validate
