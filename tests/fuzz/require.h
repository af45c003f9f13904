// A property that every input must have; libFuzzer keeps the input that ends the program.
#pragma once

#include <cstdlib>

namespace toto {

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace toto
