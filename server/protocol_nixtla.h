// What Nixtla's client (`nixtla` 0.8) sends and expects. Leaving out a key of an answer breaks it.
#pragma once

#include <string>

#include "plan.h"

namespace toto::server {

Plan plan_nixtla_forecast(const io::Json& body, const Limits& limits);
Plan plan_nixtla_cross_validation(const io::Json& body, const Limits& limits);
Plan plan_nixtla_anomaly_detection(const io::Json& body, const Limits& limits);

std::string nixtla_model_params(int patch_size);       // {"detail": {"input_size", "horizon"}}
std::string nixtla_detail(std::string_view sentence);  // {"detail": ...}

}  // namespace toto::server
