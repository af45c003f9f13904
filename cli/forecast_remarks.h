// What a user should know about a forecast that is right all the same. Each is one sentence a run,
// whatever the number of series, and none where there is nothing to say.
#pragma once

#include <optional>
#include <string>

#include "forecast_run.h"

namespace toto::cli {

// The default context cut a history that nobody asked to cut.
std::optional<std::string> context_remark(const ForecastRequest& request,
                                          const io::InputData& input);

// --multivariate with a single variate.
std::optional<std::string> multivariate_remark(const ForecastRequest& request,
                                               const io::InputData& input,
                                               const ForecastBatch& batch);

// Series that vary by so little that the model's scaler, which adds a minimum to every scale, makes
// flat lines of them. Constant ones are flat whatever their unit.
std::optional<std::string> scale_remark(const ForecastRequest& request, const io::InputData& input,
                                        const ModelInfo& model);

}  // namespace toto::cli
