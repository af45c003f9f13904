// The command line that the gates share: GATE MODEL [--self-check].
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace toto::bench {

// Exit code: 0 if `run(model, 1)` finds nothing too slow, else 1; also 1 after an exception, 2 for
// wrong usage. --self-check: 0 if a run as if ours took `handicap()` times as long finds something.
template <typename Run, typename Handicap>
int gate_main(int argc, char** argv, const char* name, Run run, Handicap handicap) {
  const bool self_check = argc == 3 && std::string_view(argv[2]) == "--self-check";
  if (argc != 2 && !self_check) {
    std::fprintf(stderr, "usage: %s MODEL [--self-check]\n", name);
    return 2;
  }
  try {
    if (!self_check) {
      const int too_slow = run(std::string(argv[1]), 1.0);
      if (too_slow > 0) std::fprintf(stderr, "error: %d of these are too slow\n", too_slow);
      return too_slow > 0 ? 1 : 0;
    }
    const double factor = handicap();
    if (run(std::string(argv[1]), factor) > 0) return 0;
    std::fprintf(stderr, "error: %s does not notice %g times the time\n", name, factor);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  return 1;
}

}  // namespace toto::bench
