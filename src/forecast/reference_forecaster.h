// Forecasts in mode `reference`: a plain version of generate_mean and generate_samples in
// forecaster.py, one series and one path at a time, with the architecture's oracle.
#pragma once

#include "forecast/plan.h"
#include "model/architecture.h"
#include "toto/toto.h"

namespace toto {

struct ReferenceRun {
  const Oracle& oracle;
  const ModelFacts& facts;
  bool in_double = false;  // the oracle's precision
  // False recomputes everything at every step, as the reference does with use_kv_cache=False. The
  // results differ, because xPos is centred on the positions of each call.
  bool use_cache = true;
};

// `out` is prepared; `trace`, if given, receives the first block's distribution and the path that
// was fed back.
void reference_forecast(const ReferenceRun& run, const Series& series,
                        const ForecastOptions& options, ThreadPool& pool, Forecast& out,
                        Timings& timings, Trace* trace);

}  // namespace toto
