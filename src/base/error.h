// Reports bad input as toto::Error. A message says what is wrong, the value found, what was
// expected and, where there is one, the next step.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "toto/toto.h"

namespace toto {

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace toto
