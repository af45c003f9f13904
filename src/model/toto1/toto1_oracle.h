// Toto1Reference behind the Oracle interface.
#pragma once

#include <memory>

#include "model/architecture.h"
#include "model/toto1/toto1_config.h"

namespace toto {

// Reads the weights into memory in float32, or float64 if `in_double`.
std::unique_ptr<Oracle> make_toto1_oracle(const Toto1Config& config, const Checkpoint& checkpoint,
                                          bool in_double);

}  // namespace toto
