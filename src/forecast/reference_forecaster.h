// Forecasts in `reference` mode: forecaster.py: generate_mean and generate_samples written down
// plainly, one series and one path at a time.
#pragma once

#include "forecast/plan.h"
#include "model/reference_toto1.h"
#include "toto/toto.h"

namespace toto {

// `out` is prepared; `trace`, if given, receives the first patch's distribution and the mean path.
// `use_cache` false recomputes everything at every step, as the reference does with
// use_kv_cache=False; the two differ, because xPos centres on the positions of each call.
template <typename T>
void reference_forecast(const ReferenceToto1<T>& model, const Series& series,
                        const ForecastOptions& options, bool use_cache, ThreadPool& pool,
                        Forecast& out, Timings& timings, Trace* trace);

}  // namespace toto
