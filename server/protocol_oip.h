// The Open Inference Protocol, version 2, with the binary tensor extension, as Triton's clients use
// it.
#pragma once

#include <string>
#include <string_view>

#include "request_fields.h"

namespace toto::server {

inline constexpr std::string_view kTensorHeaderLength = "Inference-Header-Content-Length";

// `header_length` is the value of that header, or empty: the number of JSON bytes at the start of
// the body. Binary tensors follow them.
PreparedRequest prepare_oip(std::string_view body, std::string_view header_length,
                            const std::string& model, const RequestLimits& limits);

std::string oip_server_metadata();
std::string oip_model_metadata(const std::string& model);

}  // namespace toto::server
