// A value and its origin: "--mode", "TOTO_COMPILE_MODE", "toto.conf:3: mode".
#pragma once

#include <string>

namespace toto::cli {

struct Choice {
  std::string text;
  std::string origin;
};

}  // namespace toto::cli
