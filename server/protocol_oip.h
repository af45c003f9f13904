// The Open Inference Protocol, version 2, with the binary tensor extension: what Triton's clients
// speak.
#pragma once

#include <string>
#include <string_view>

#include "plan.h"

namespace toto::server {

inline constexpr std::string_view kTensorHeaderLength = "Inference-Header-Content-Length";

// `header_length` is what the header of that name says, empty without one: how many bytes of the
// body are JSON. Tensors follow it.
Plan plan_oip(std::string_view body, std::string_view header_length, const std::string& model,
              const Limits& limits);

std::string oip_server_metadata();
std::string oip_model_metadata(const std::string& model);

}  // namespace toto::server
