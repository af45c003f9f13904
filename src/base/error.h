// The one way this code base reports what is wrong with its input: a toto::Error with a sentence.
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
