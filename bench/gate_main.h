// The command line that the gates share: GATE MODEL [--handicap FACTOR].
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace toto::bench {

// Exit code: that of `run(model, handicap)`; 1 after an exception, 2 for wrong usage.
template <typename Run>
int gate_main(int argc, char** argv, const char* name, Run run) {
  const bool handicapped = argc == 4 && std::string(argv[2]) == "--handicap";
  const double handicap = handicapped ? std::strtod(argv[3], nullptr) : 1;
  if ((argc != 2 && !handicapped) || !(handicap >= 1)) {
    std::fprintf(stderr, "usage: %s MODEL [--handicap FACTOR]   (at least 1)\n", name);
    return 2;
  }
  try {
    return run(std::string(argv[1]), handicap);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

}  // namespace toto::bench
