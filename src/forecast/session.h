// The state of a session: its series so far and the contexts it has kept.
#pragma once

#include <memory>

#include "forecast/kept_contexts.h"
#include "toto/toto.h"

namespace toto {

struct Session::Impl {
  // Error(invalid_argument) for a history that no forecast could be made from.
  Impl(std::shared_ptr<Engine::Impl> owner, Series history, const SessionOptions& limits);

  void append(std::span<const float> values);

  std::shared_ptr<Engine::Impl> engine;
  Series series;
  SessionOptions options;
  SessionStats stats;  // without `contexts` and `bytes`, which `kept` reports
  KeptContexts kept;
};

}  // namespace toto
