// Backtests for the service: bars and settings of a request in, results.json and the report out.
#pragma once

#include <cstdint>
#include <functional>

#include "io/json.h"
#include "server/service.h"

namespace toto::cli {

// {"csv": {"AAPL": "date,open,high,low,close\n..."}, "settings": {...}}: the settings are those of
// a results.json, except for the model and how it runs, which are the service's. Variables and the
// config file of the service do not count. `seed` is that of a request without one.
server::BacktestFiles serve_backtest(const io::Json& body, const server::ActiveEngine& active,
                                     std::uint64_t seed, const std::function<bool()>& cancelled);

// The same body; the JSON of `toto signal`.
server::SignalAnswer serve_signal(const io::Json& body, const server::ActiveEngine& active,
                                  std::uint64_t seed, const std::function<bool()>& cancelled);

}  // namespace toto::cli
