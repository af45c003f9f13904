// `toto compare-modes`: the modes side by side on real data. Every mode forecasts the same windows
// from the same seed, so that what differs between them is not sampling noise, and is compared
// with the values that really came next.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validate/held_out.h"
#include "validate/latency.h"
#include "validate/runner.h"
#include "validate/verify.h"

namespace toto::validate {

struct CompareOptions {
  std::string model;  // a model folder
  std::vector<Symbol> symbols;
  // `reference` is what the others are compared with, and comes first whether it is named or not.
  std::vector<Mode> modes = all_modes(DType::f32);
  int context = 512;
  int horizon = 1;
  int samples = 128;     // 0: exact as far as a patch reaches
  int runs = 20;         // windows of each symbol, each forecast once by every mode
  EngineOptions engine;  // all but the mode; `reference` always has float32 weights
  std::uint64_t seed = 0;
  Loader load = load_runner;
  std::function<bool()> cancelled;  // asked between forecasts; true: Error(cancelled)
  std::function<void(int done, int total)> progress;  // forecasts
};

// One symbol in one mode.
struct CompareRow {
  std::string symbol;
  Mode mode = Mode::reference;
  std::vector<double> milliseconds;  // of every run, oldest window first
  double first_ms = 0;               // the first forecast after loading, or of this symbol
  Latency latency;
  double speedup = 0;  // mean time of `reference` over the mean time of this mode
  Accuracy accuracy, persistence;
  std::vector<float> predicted, actual;  // [run x step], for a chart
  // Of mean, median and quantiles, in the unit of the data.
  double deviation_mean = 0, deviation_max = 0;
  double size = 0;                      // mean |x| of what is compared
  std::size_t num_values = 0;           // compared, samples included
  std::size_t differing_reruns = 0;     // of the first window, forecast a second time
  std::size_t differing_optimised = 0;  // from the first optimised mode, by their bits
  std::int64_t replans = 0;
  std::optional<double> peak_memory_mb;
};

struct CompareReport : JudgedReport {
  int context = 0, horizon = 0, samples = 0, runs = 0;
  std::vector<Mode> modes;
  std::vector<CompareRow> rows;      // by symbol, then by mode
  std::vector<std::string> weights;  // where they came from: packed, mapped, a cache refused

  std::vector<std::string> findings() const;  // what the figures come to, a sentence each
};

// A mode that cannot be loaded or fails at a forecast fails its checks; a model or data that cannot
// be used is an Error.
CompareReport compare_modes(const CompareOptions& options);

std::string json_text(const CompareReport& report);
std::string markdown_text(const CompareReport& report);
std::string table_text(const CompareReport& report);  // for a terminal
std::string page_html(const CompareReport& report);

}  // namespace toto::validate
