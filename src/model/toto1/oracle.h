// The plain reference behind the oracle's interface.
#pragma once

#include <memory>

#include "model/architecture.h"
#include "model/toto1/config.h"

namespace toto {

std::unique_ptr<Oracle> make_toto1_oracle(const Toto1Config& config, const Checkpoint& checkpoint,
                                          bool in_double);

}  // namespace toto
