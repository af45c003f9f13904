// The protocol of Nixtla's client (`nixtla` 0.8 and 0.9). It requires every key of an answer.
#pragma once

#include <string>

#include "request_fields.h"

namespace toto::server {

PreparedRequest prepare_nixtla_forecast(const io::Json& body, const RequestLimits& limits);
PreparedRequest prepare_nixtla_cross_validation(const io::Json& body, const RequestLimits& limits);
PreparedRequest prepare_nixtla_anomaly_detection(const io::Json& body, const RequestLimits& limits);

std::string nixtla_model_params(const ModelFacts& facts);  // {"detail": {"input_size", "horizon"}}

}  // namespace toto::server
