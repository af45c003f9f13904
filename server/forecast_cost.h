// What a forecast costs, known before it is made. Prices and lanes use only this rule.
#pragma once

#include "toto/toto.h"

namespace toto::server {

// Values the network reads or draws, weighted by how far back each looks.
double forecast_cost(double num_variates, double length, const ForecastOptions& options,
                     const ModelFacts& facts);

}  // namespace toto::server
