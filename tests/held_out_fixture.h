// Small symbols and a small model for tests of what judges modes by held-out values.
#pragma once

#include <string>
#include <vector>

#include "test_model.h"
#include "validate/held_out.h"

namespace toto::validate {

// One model for all tests of a file; it is never changed.
inline const std::string& shared_model() {
  static const testing::TemporaryFolder folder;
  static const std::string path = testing::made_model(folder);
  return path;
}

inline std::vector<Symbol> two_symbols(int length) {
  return {{.name = "ONE", .values = testing::walk(1, length).values},
          {.name = "TWO", .values = testing::walk(2, length).values}};
}

}  // namespace toto::validate
