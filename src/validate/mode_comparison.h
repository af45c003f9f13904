// `toto compare-modes`: the modes side by side on real data. Every mode forecasts the same windows
// with the same seed, so that no difference is sampling noise, and is compared with the actual
// values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validate/held_out.h"
#include "validate/judged_report.h"
#include "validate/latency.h"
#include "validate/runner.h"

namespace toto::validate {

struct CompareOptions {
  std::string model;  // a model folder
  std::vector<Symbol> symbols;
  // The others are compared with `reference`, which runs first whether it is listed or not.
  std::vector<Mode> modes = all_modes(DType::f32);
  int context = 512;
  int horizon = 1;
  int samples = 128;     // 0: exact for the first patch
  int runs = 20;         // windows per symbol, each forecast once per mode
  EngineOptions engine;  // without the mode; `reference` always has float32 weights
  std::uint64_t seed = 0;
  Loader load = load_runner;
  std::function<bool()> cancelled;  // called between forecasts; true: Error(cancelled)
  std::function<void(int done, int total)> progress;  // forecasts
};

// One symbol in one mode.
struct CompareRow {
  std::string symbol;
  Mode mode = Mode::reference;
  std::vector<double> milliseconds;  // of every run, oldest window first
  double first_ms = 0;               // of the first forecast of this symbol
  Latency latency;
  double speedup = 0;  // mean time of `reference` over the mean time of this mode
  Accuracy accuracy, persistence;
  std::vector<float> predicted, actual;  // [run x step], for a chart
  // From `reference`, of mean, median and quantiles, in the unit of the data.
  double deviation_mean = 0, deviation_max = 0;
  double size = 0;                      // mean |x| of the compared values
  std::size_t num_values = 0;           // compared, samples included
  std::size_t differing_reruns = 0;     // numbers of the first window, forecast a second time
  std::size_t differing_optimised = 0;  // numbers unlike the first optimised mode, by their bits
  std::int64_t replans = 0;
  std::optional<double> peak_memory_mb;
};

struct CompareReport : JudgedReport {
  int context = 0, horizon = 0, samples = 0, runs = 0;
  std::vector<Mode> modes;
  std::vector<CompareRow> rows;      // by symbol, then by mode
  std::vector<std::string> weights;  // their origin: packed, read, or why a cache was refused

  std::vector<std::string> findings() const;  // conclusions from the figures, in sentences
};

// A mode that cannot be loaded or cannot forecast fails its checks; an unusable model or unusable
// data is an Error.
CompareReport compare_modes(const CompareOptions& options);

std::string json_text(const CompareReport& report);
std::string markdown_text(const CompareReport& report);
std::string table_text(const CompareReport& report);  // for a terminal
std::string page_html(const CompareReport& report);

}  // namespace toto::validate
