// Backtests for the service: bars and settings of a request in, results.json and the report out.
#pragma once

#include <functional>

#include "io/json.h"
#include "server/service.h"
#include "settings.h"

namespace toto::cli {

// {"csv": {"AAPL": "date,open,high,low,close\n..."}, "settings": {...}}: the settings are those of
// a results.json, but for the model and how it runs, which are the service's.
server::BacktestFiles serve_backtest(const io::Json& body, const server::ActiveEngine& active,
                                     const Settings& settings,
                                     const std::function<bool()>& cancelled);

}  // namespace toto::cli
