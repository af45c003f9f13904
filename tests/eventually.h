// Tests wait for conditions, not for milliseconds.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace toto::testing {

// Only turns a hang into a failure, however busy the machine is.
inline constexpr std::chrono::milliseconds kPatience{300'000};

// Whether the condition came true.
inline bool eventually(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace toto::testing
