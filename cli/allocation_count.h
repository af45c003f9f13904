// Counts allocations of this process, to show that a forecast allocates nothing.
#pragma once

#include <cstdint>

namespace toto::cli {

// Calls of any form of operator new so far, by all threads.
std::uint64_t allocation_count() noexcept;

}  // namespace toto::cli
