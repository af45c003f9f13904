// Toto2Reference behind the Oracle interface.
#pragma once

#include <memory>

#include "model/architecture.h"
#include "model/toto2/toto2_config.h"

namespace toto {

// Reads the weights into memory in float32, or float64 if `in_double`.
std::unique_ptr<Oracle> make_toto2_oracle(const Toto2Config& config, const Checkpoint& checkpoint,
                                          bool in_double);

}  // namespace toto
