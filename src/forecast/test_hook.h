// A way in for tests alone: what cannot be asked of an Engine and must be tried nevertheless.
#pragma once

#include "toto/toto.h"

namespace toto {

struct EngineTestHook {
  // Changes one packed weight in memory, as a broken memory module might. Not for `reference` mode
  // nor weights mapped from the cache: Error(unsupported).
  static void damage_weight(const Engine& engine);
};

}  // namespace toto
