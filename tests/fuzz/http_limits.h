// What every fuzz target of the HTTP protocols requires: limits, and one sentence per refusal.
#pragma once

#include <cstdlib>
#include <string_view>

#include "server/prepared_request.h"

namespace toto::server {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline const RequestLimits kFuzzLimits{
    .max_series = 1000, .max_horizon = 1000, .max_answer_bytes = 1 << 24, .max_memory = 1 << 20};

// Runs `action`; an error must be the client's and have a message of one line.
template <typename Action>
void expect_one_sentence(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::corrupt_file ||
            error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unsupported);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace toto::server
