// A byte source that returns few bytes per read.
#pragma once

#include <algorithm>
#include <string_view>

#include "io/csv.h"

namespace toto::io {

// Returns at most `step` bytes at a time, like a slow pipe.
class SlowSource final : public ByteSource {
 public:
  SlowSource(std::string_view bytes, std::size_t step) : bytes_(bytes), step_(step) {}
  std::size_t read(char* dst, std::size_t size) override {
    const std::size_t count = bytes_.copy(dst, std::min(size, step_));
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
  std::size_t step_;
};

}  // namespace toto::io
